"""A question that is asked again and again, mostly answered as the last time. No I/O.

A stream that waits for records asks where thousands of partitions end, many times a second, and
nearly always with the same words and for the same answer. Making both anew takes most of its time.
"""

from __future__ import annotations

from typing import Any, Generic

from pyspark_kafkaproto.wire.cursor import Buffer, Writer
from pyspark_kafkaproto.wire.declaration import Response
from pyspark_kafkaproto.wire.frame import (
    CORRELATION_BYTES,
    AnyRequest,
    body_of,
    decode_response,
)


class Standing(Generic[AnyRequest]):
    """A request to be sent many times, whose last answer is kept.

    Args:
        message: the request; messages are frozen, so what was encoded stays true.
    """

    __slots__ = ("_bodies", "_last", "message")

    def __init__(self, message: AnyRequest) -> None:
        self.message = message
        self._bodies: dict[int, Writer] = {}
        self._last: tuple[type[Response], int, bytes, Any] | None = None

    def body(self, version: int) -> Writer:
        """What stands behind its header, encoded once a version; errors as for `encode`."""
        found = self._bodies.get(version)
        if found is None:
            found = Writer()
            found.put(body_of(self.message, version).getvalue())
            self._bodies[version] = found
        return found

    def read_answer(self, cls: type[Response], payload: Buffer, version: int) -> Any:
        """The message in a response frame without its size; errors as for `decode_response`.

        The very object of the last time, if all behind the correlation id is as it was then.
        """
        last = self._last
        # Bytes are compared by one call, views number by number.
        said = bytes(memoryview(payload)[CORRELATION_BYTES:])
        if last is not None and last[:3] == (cls, version, said):
            return last[3]
        # Out of our own: memory of frames is used again, and views would go stale.
        _, message = decode_response(cls, bytes(payload), version)
        self._last = (cls, version, said, message)
        return message


def message_of(request: Any) -> Any:
    """The message of a request that may be a standing one."""
    return request.message if isinstance(request, Standing) else request
