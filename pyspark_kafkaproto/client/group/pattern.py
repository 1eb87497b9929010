"""Topics by a pattern, as group members of KIP-848 subscribe to them."""

from __future__ import annotations

from typing import NamedTuple


class SubscriptionPattern(NamedTuple):
    """All topics whose whole name matches: the brokers look, and go on looking.

    Attributes:
        pattern: a regular expression in the syntax of RE2/J, not in that of Python.
    """

    pattern: str
