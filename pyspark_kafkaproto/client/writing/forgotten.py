"""Producers that go without `flush` or `close`: what they still hold nobody writes any more."""

from __future__ import annotations

import logging
import os
import weakref

_log = logging.getLogger(__name__)


class Unwritten:
    """Whether a producer has been given rows that nobody has waited for.

    A warning says so once it is gone, or its process ends in the midst of its life.

    Args:
        producer: which is not held here.
        transactional_id: its own, if it has one.
    """

    def __init__(self, producer: object, transactional_id: str | None) -> None:
        self.is_some = False
        self._transactional_id = transactional_id
        self._process = os.getpid()
        weakref.finalize(producer, self._tell)

    def _tell(self) -> None:
        if not self.is_some or self._process != os.getpid():  # a child's rows are its parent's
            return
        if self._transactional_id is None:
            _log.warning(
                "a producer is gone and was not closed: what was sent since its last flush may "
                "not be written; flush or close it, or use it in a `with` block"
            )
        else:
            _log.warning(
                "the producer %r is gone and was not closed: its transaction may be open until it "
                "times out, and is then aborted; commit or abort it, or use a `with` block",
                self._transactional_id,
            )
