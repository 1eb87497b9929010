"""How long others wait for a broker that may say nothing.

Long once in a while, as it may be slow, or far away, each time twice as long; short in between, as
whoever is back answers soon. So others are read for most of the time. Knows nothing of what is
asked.
"""

from __future__ import annotations

import math
from typing import Final

from pyspark_kafkaproto.net import Deadline

FIRST_S: Final = 3.0  # a long try, at first
SHORT_S: Final = 0.3
LONGEST_REST_S: Final = 30.0  # from the end of a long one to the next
_MOST_OF_THE_TIME: Final = 10


class Patience:
    """The tries of one who may not answer.

    Args:
        long_s: for how long others wait in the first long one.
        most_s: in any.

    Attributes:
        long_s: in the next long one.
        is_long: whether the one that began last is one.
    """

    def __init__(self, long_s: float, most_s: float = math.inf) -> None:
        self.long_s = long_s
        self._most_s = most_s
        self._again = Deadline.after(0)  # tries before that are short
        self.is_long = True

    def begin(self) -> float:
        """How long the try that begins now may take."""
        self.is_long = self._again.has_passed
        return self.long_s if self.is_long else SHORT_S

    def was_in_vain(self, rest_s: float) -> None:
        """Its time is over: after a long one the next tries are short, for `rest_s`."""
        if self.is_long:
            self.long_s = min(2 * self.long_s, self._most_s)
            self._again = Deadline.after(rest_s)


def rest_after(took_s: float) -> float:
    """For how long others come before somebody they have waited for, all in all, for `took_s`."""
    return min(_MOST_OF_THE_TIME * took_s, LONGEST_REST_S)
