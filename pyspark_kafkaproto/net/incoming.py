"""The way into a connection: which answers are to come, and how much of the next one is there.

Answers come in the order of the requests, so that the oldest one's is always the next; a
correlation id says no more than whether that is so. Whatever fails here leaves a stream on which
nobody knows what comes next: `connection` closes then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from time import time_ns
from typing import Any, NamedTuple

from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    OutOfMemory,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages import key_of
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.net import hints
from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.observing import OnFrame
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.net.versions import BrokerVersions
from pyspark_kafkaproto.wire.frame import frame_size, peek_correlation_id, response_front
from pyspark_kafkaproto.wire.standing import Standing

MakeBuffer = Callable[[int], memoryview]

SASL_AUTHENTICATE = key_of("SaslAuthenticate")  # its frames hold passwords
# Until it has answered, the peer may be anything: no memory for whatever size its bytes read as.
_HANDSHAKE_FRAME_BYTES = 1 << 20


class InFlight(NamedTuple):
    """A request that was sent, and what is to answer it.

    sent_at: on the monotonic clock. standing: the request, where it is such a one.
    """

    correlation_id: int
    response: type[Any]
    version: int
    sent_at: float
    standing: Standing[Any] | None


class Incoming:
    """Of one connection.

    Attributes:
        in_flight: requests whose response was not taken yet, oldest first.
        arriving: a response that was begun and is not finished.
        heard_at: when `take_some` found something last (time.monotonic).
    """

    __slots__ = (
        "_config",
        "_on_frame",
        "_taken",
        "_transport",
        "_versions",
        "_was_served",
        "arriving",
        "heard_at",
        "in_flight",
    )

    def __init__(
        self,
        transport: Transport,
        config: ClientConfig,
        versions: BrokerVersions,
        on_frame: OnFrame | None,
    ) -> None:
        self._transport = transport
        self._config = config
        self._versions = versions
        self._on_frame = on_frame
        self.in_flight: deque[InFlight] = deque()
        self._was_served = False
        self._taken: Arrival | None = None  # what `take_some` has of the next response
        self.arriving: Arrival | None = None
        self.heard_at = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether all of the next response is there, and nobody has begun it."""
        return self._taken is not None and self._taken.is_whole

    def take_some(self, make_buffer: MakeBuffer, flow_s: float) -> bool:
        """Receive what is there of the next response, and what flows; whether that was all."""
        arrival = self._taken = self._taken or Arrival()
        deadline, flow = Deadline.after(0.0), Deadline.after(flow_s)
        while not arrival.is_whole:
            is_size = not arrival.is_sized
            try:
                count = self._transport.receive_some(arrival.rest, deadline)
            except ConnectionFailed as error:
                raise self._explain_end(error, arrival) from error
            if not count:
                return False
            arrival.note(count)
            self.heard_at = time.monotonic()
            deadline = flow
            if is_size:
                self._make_room(arrival, make_buffer)
        self._show(arrival)
        return True

    def begin(
        self, make_buffer: MakeBuffer, piece_bytes: int | None, deadline: Deadline, *, thread: bool
    ) -> Arrival:
        """The start of the next response, see `Connection.begin`; what was taken of it is in it."""
        arrival = self.arriving = self._taken or Arrival()
        self._taken = None
        try:
            if not arrival.is_sized:
                self._transport.receive_into(arrival.rest, deadline)
                arrival.note(len(arrival.rest))
                self._make_room(arrival, make_buffer)
            self._receive(arrival, piece_bytes, deadline)
        except ConnectionFailed as error:
            raise self._explain_end(error, arrival) from error
        except DeadlineExceeded as error:
            raise self._named(error) from error
        waiting = self.in_flight[0]
        self._check_answers(waiting, arrival.payload)
        if not arrival.is_whole:
            seen = arrival.payload[: arrival.arrived]
            arrival.front = response_front(waiting.response, seen, waiting.version)
        if arrival.front is not None and piece_bytes is not None:
            self._transport.receive_ahead(
                arrival, arrival.front.pos, piece_bytes, deadline, thread=thread
            )
        return arrival

    def receive(self, arrival: Arrival, piece_bytes: int | None, deadline: Deadline) -> None:
        """Receive another piece, or all of the rest if that is less than two pieces; None: all."""
        try:
            self._receive(arrival, piece_bytes, deadline)
        except DeadlineExceeded as error:
            raise self._named(error) from error

    def _receive(self, arrival: Arrival, piece_bytes: int | None, deadline: Deadline) -> None:
        start, size = arrival.arrived, len(arrival.payload)
        stop = size
        if piece_bytes is not None and size - start >= 2 * piece_bytes:
            stop = start + piece_bytes
        if start < stop:
            self._transport.receive_rest(arrival, stop, deadline)
        self._show(arrival)

    def finish(self, arrival: Arrival, deadline: Deadline) -> InFlight:
        """Receive all of it; what it answers, which is in flight no more."""
        self.receive(arrival, None, deadline)
        self._let_go()
        waiting = self.in_flight.popleft()
        self._was_served = self._was_served or waiting.response is not ApiVersionsResponse
        return waiting

    def drop(self) -> None:
        """Nothing is to come any more."""
        self.in_flight.clear()
        self._taken = None
        self._let_go()

    def _let_go(self) -> None:
        """Nothing is received for `arriving` from here on; its memory and the socket are free."""
        if self.arriving is not None and self.arriving.inflow is not None:
            self.arriving.inflow.stop()
        self.arriving = None

    def _show(self, arrival: Arrival) -> None:
        """Tell who observes of a frame that is whole now."""
        if self._on_frame is None or arrival.is_shown or not arrival.is_whole:
            return
        if self.in_flight[0].response.API_KEY != SASL_AUTHENTICATE:
            arrival.is_shown = True
            self._on_frame("received", (arrival.payload,), time_ns())

    def _make_room(self, arrival: Arrival, make_buffer: MakeBuffer) -> None:
        """Memory for the frame, once its size is there."""
        if not arrival.is_sized:
            return
        size_bytes = self._checked_size(bytes(arrival.size))
        try:
            arrival.payload = make_buffer(size_bytes)
        except (MemoryError, OSError) as error:  # of mmap it is an OSError
            where = str(self._transport.endpoint)
            raise OutOfMemory(where, size_bytes, self._config.prefix) from error

    def _checked_size(self, prefix: bytes) -> int:
        most = self._config.receive_message_max_bytes
        why = self._config.named("receive.message.max.bytes")
        if not self._versions.are_known and most > _HANDSHAKE_FRAME_BYTES:
            most, why = _HANDSHAKE_FRAME_BYTES, "before versions are agreed on"
        try:
            return frame_size(prefix, most)
        except RemoteProtocolError as error:
            reason = f"{error.reason} ({why}){hints.of_bytes(prefix, self._config)}"
            where = f"broker {self._transport.endpoint}"
            raise RemoteProtocolError(reason, where=where) from None

    def _check_answers(self, waiting: InFlight, payload: memoryview) -> None:
        found = peek_correlation_id(payload)
        if found != waiting.correlation_id:
            raise RemoteProtocolError(
                f"response has correlation id {found}, expected {waiting.correlation_id}",
                where=f"broker {self._transport.endpoint}, {waiting.response.API_NAME}",
            )

    def _named(self, error: DeadlineExceeded) -> DeadlineExceeded:
        """With what was waited for: a broker may answer one question and hang at another."""
        if not self.in_flight:  # another thread has just closed
            return error
        api = self.in_flight[0].response.API_NAME
        return DeadlineExceeded(f"{error.what} the answer to {api}", error.timeout_s)

    def _explain_end(self, error: ConnectionFailed, arrival: Arrival) -> ConnectionFailed:
        """A listener with SASL answers ApiVersions to anybody, and hangs up at what comes next.

        Whoever has begun to answer that is none.
        """
        is_known = self._versions.are_known
        is_first = is_known and not self._was_served and not self._config.uses_sasl
        if not is_first or arrival.is_sized:
            return error
        why = f"{error.reason} at the first request ({hints.of_first_request(self._config)})"
        return ConnectionFailed(error.broker, error.stage, why)
