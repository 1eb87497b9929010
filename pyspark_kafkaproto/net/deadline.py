"""Points in time by which work has to be done."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark_kafkaproto.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, with the time that was given for errors to name."""

    at: float
    timeout_s: float

    @classmethod
    def after(cls, timeout_s: float) -> Deadline:
        """The deadline `timeout_s` seconds from now."""
        return cls(time.monotonic() + timeout_s, timeout_s)

    def sooner(self, timeout_s: float) -> Deadline:
        """This deadline, or `timeout_s` from now if that comes first."""
        other = Deadline.after(timeout_s)
        return other if other.at < self.at else self

    def later(self, delay_s: float) -> Deadline:
        """This deadline, moved by `delay_s`."""
        return Deadline(self.at + delay_s, self.timeout_s)

    @property
    def remaining_s(self) -> float:
        """Seconds left; 0 when it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def check(self, what: str) -> None:
        """Raise DeadlineExceeded for `what` if no time is left."""
        if self.has_passed:
            raise DeadlineExceeded(what, self.timeout_s)
