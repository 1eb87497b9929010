"""Listeners that note what they are told."""

from __future__ import annotations


class Noted(list):
    """Listeners that note what they are told."""

    def listeners(self):
        return {
            "on_assign": lambda own: self.append(("assigned", own)),
            "on_revoke": lambda own: self.append(("revoked", own)),
            "on_lost": lambda own: self.append(("lost", own)),
        }

    def has(self, what, times=1):
        return lambda: sum(word == what for word, _ in self) >= times
