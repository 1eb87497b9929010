"""A consumer as its user has it: in a `with` block, iterated over, and polled by one thread.

What is the same for members of consumer groups and of share groups; what they read, and how they
say what is done, is their own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from numbers import Real
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from pyspark_kafkaproto.client.alone import Alone
from pyspark_kafkaproto.client.group.membership import Membership, State
from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError
from pyspark_kafkaproto.net import Deadline

if TYPE_CHECKING:
    import pyarrow as pa

_ITERATION_S: Final = 1.0

_T = TypeVar("_T")


class Polled(ABC):
    """Gives batches until it is closed.

    Args:
        membership: whose end is the end.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        membership.read_by(self)
        # A handler of signals may call in the midst of a poll, where positions have moved over rows
        # that nobody was given yet: a `commit` or `close` there would have them passed over.
        self._alone = Alone("consumer")
        self._is_closing = self._has_ended = False  # an interrupted `close` is none of both
        self._interrupt: BaseException | None = None  # met by `poll`, between two batches

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Rows that met an error were not worked off: the group is to see them again. An interrupt
        # of `poll` has met none.
        self._leave_block(is_done=error is None or error is self._interrupt)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches, for as long as there is somebody to take them; ends when it is closed meanwhile.

        Raises:
            LocalProtocolError: the consumer is closed already.
        """
        self._membership.check_open()
        return self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while not self._is_closed:
            try:
                batch = self.poll(_ITERATION_S)
            except LocalProtocolError:
                if self._membership.state is not State.CLOSED:
                    raise
                batch = None  # a listener has closed it in the midst of that poll
            if batch is not None:
                yield batch

    @abstractmethod
    def poll(self, timeout_s: float = 1.0) -> pa.RecordBatch | None:
        """Rows of one partition, or None where none came in `timeout_s` seconds."""

    def _poll_alone(self, timeout_s: float) -> pa.RecordBatch | None:
        """What `poll` does: by one thread at a time, and what an error meets comes again."""
        _check_seconds(timeout_s)
        is_begun = False
        try:
            with self._alone():
                self._note_arrived()
                is_begun = True
                batch = self._poll(Deadline.after(timeout_s))
                if batch is None:
                    # Others have the interpreter for a moment. Who polls again and again without
                    # waiting would have it back before another thread has woken up, that of the
                    # membership among them: for most of a second at a time.
                    time.sleep(0)
        except BaseException as error:  # of a handler of signals, perhaps as the block above ends
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                self._interrupt = error
            if is_begun:
                self._take_back()
            raise
        return batch

    @abstractmethod
    def _poll(self, deadline: Deadline) -> pa.RecordBatch | None:
        """See `poll`."""

    @abstractmethod
    def _note_arrived(self) -> None:
        """Who polls has what the poll before gave."""

    @abstractmethod
    def _take_back(self) -> None:
        """What the poll that has failed would have given is to come again."""

    def _close_once(self, close: Callable[[], _T]) -> _T | None:
        """What `close` gives; None where there is nothing to close, or it is under way.

        One that was interrupted can be called again, and goes on.
        """
        if self._alone.is_a_copy or self._has_ended or self._is_closing:
            return None
        with self._alone():
            self._is_closing = True
            try:
                return close()
            finally:
                self._is_closing = False

    @abstractmethod
    def _leave_block(self, *, is_done: bool) -> None:
        """Close, at the end of a `with` block; `is_done`: what was given was worked off."""

    @property
    def _is_closed(self) -> bool:
        return self._membership.state is State.CLOSED


def _check_seconds(timeout_s: object) -> None:
    """Refuse what no clock can tell the end of: of NaN it would never say that it has passed."""
    if not isinstance(timeout_s, Real) or timeout_s != timeout_s:  # noqa: PLR0124 - NaN alone
        allowed = "expected seconds: 0 waits for nothing, math.inf until there are rows"
        raise ConfigError("timeout_s", timeout_s, allowed)
