"""One connection to one broker: handshake, login, pipelined requests, correlation, throttling.

Responses come in the order of the requests; a connection on which anything went wrong is closed,
because what follows on it could be anybody's answer. Not for use by two threads at once.
Protocol: Kafka's protocol guide; KIP-35 and KIP-511 (ApiVersions), KIP-219 (throttling), KIP-368
(logins that end and are renewed).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from time import time_ns
from typing import Any, Generic, NamedTuple, TypeVar

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.error_codes import UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    LocalProtocolError,
    OutOfMemory,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages import key_of, response_class
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.net import hints
from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.observing import OnFrame, observer_of
from pyspark_kafkaproto.net.transport import TLS_STAGE, Endpoint, Transport
from pyspark_kafkaproto.net.versions import BrokerVersions
from pyspark_kafkaproto.wire.frame import (
    SIZE_PREFIX_BYTES,
    decode_response,
    frame_size,
    peek_correlation_id,
    request_pieces,
    response_front,
)

_log = logging.getLogger(__name__)
_R = TypeVar("_R")

MakeBuffer = Callable[[int], memoryview]

_SASL_AUTHENTICATE = key_of("SaslAuthenticate")
# Every broker since 3.8 speaks it; a higher one costs most of them a second round trip.
_FIRST_API_VERSIONS = 4
# Until it has answered, the peer may be anything: no memory for whatever size its bytes read as.
_HANDSHAKE_FRAME_BYTES = 1 << 20


class Reply(NamedTuple, Generic[_R]):
    """A response with what was measured about it."""

    message: _R
    size_bytes: int
    latency_s: float


class _InFlight(NamedTuple):
    correlation_id: int
    response: type[Any]
    version: int
    sent_at: float


def fresh_buffer(size_bytes: int) -> memoryview:
    """Memory for one response, owned by whoever holds the response."""
    return memoryview(bytearray(size_bytes))


class Connection:
    """Requests out, responses in, to one broker.

    Args:
        transport: connected; the connection owns it from here on.
        config: client id, frame cap, who we are.
        on_frame: called with `sent` or `received`, each frame without its size prefix, and when its
            sending began or it was seen that all of it had come, in ns since 1970; not with those
            of SaslAuthenticate, which hold passwords, nor with what could not be sent.
    """

    def __init__(
        self, transport: Transport, config: ClientConfig, on_frame: OnFrame | None = None
    ) -> None:
        self.endpoint = transport.endpoint
        self.is_open = True
        self._transport = transport
        self._config = config
        self._on_frame = on_frame
        self._in_flight: deque[_InFlight] = deque()
        self._unsent: list[memoryview] = []  # of the last request
        self._next_correlation_id = 0
        self._quiet_until = 0.0
        self._versions = BrokerVersions(self.endpoint)
        self._renew_login_at, self.login_ends_at = float("inf"), 0.0  # (time.monotonic)
        self._was_served = False
        self._arriving: Arrival | None = None  # a response that was begun and is not finished
        self._taken: Arrival | None = None  # what `take_in` has of the next response
        self._failure: KafkaProtoError | None = None  # what it found instead
        self.heard_at = 0.0  # when `take_in` found something last (time.monotonic)

    @classmethod
    def open(
        cls,
        endpoint: Endpoint,
        config: ClientConfig,
        deadline: Deadline,
        on_frame: OnFrame | None = None,
        first: int = 0,
    ) -> Connection:
        """Connect, ask which versions the broker speaks, say who we are.

        Args:
            endpoint: the broker.
            config: the client's.
            deadline: when to give up.
            on_frame: is told of every frame; None: who observes new connections, if anybody.
            first: with which of several addresses to begin; see `open_socket`.

        Raises:
            ConnectionFailed: names the broker and the stage.
            AuthenticationFailed: the broker refuses us, or is not who it should be.
            DeadlineExceeded: no answer in time.
        """
        setup = deadline.sooner(config.connection_setup_timeout_s)
        if config.uses_tls:
            # Executors pay every import at every start: those pay for `ssl` who use it.
            from pyspark_kafkaproto.net.tls import connect_tls  # noqa: PLC0415

            transport = connect_tls(endpoint, config, setup, first)
        else:
            transport = Transport.connect(endpoint, setup, first)
        connection = cls(transport, config, on_frame)
        try:
            if on_frame is None:
                here = transport.local_address()
                connection._on_frame = observer_of(config, here, endpoint)
            connection._learn_versions(setup)
            if config.uses_sasl:
                connection._log_in(setup)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def in_flight(self) -> int:
        """Requests sent whose response was not taken yet."""
        return len(self._in_flight)

    @property
    def is_idle(self) -> bool:
        """Whether the next request can be sent on it: open at both ends, nothing outstanding."""
        return self.is_open and not self.in_flight and not self._transport.is_readable()

    def fileno(self) -> int:
        """What the system calls the socket, to wait for several at once."""
        return self._transport.fileno()

    @property
    def features(self) -> dict[str, int]:
        """Finalized features of the cluster, by name (KIP-584)."""
        return self._versions.features

    @property
    def has_unsent(self) -> bool:
        """Whether a request has not left as a whole: the peer takes nothing more for now."""
        return bool(self._unsent)

    @property
    def must_drain(self) -> bool:
        """Whether who sends ahead is to take the answers first.

        Our login is to be renewed (KIP-368), which the next `send` with nothing in flight does; a
        broker ends a connection whose login is over.
        """
        return bool(self._in_flight) and time.monotonic() >= self._renew_login_at

    @property
    def is_throttled(self) -> bool:
        """Whether the broker wants silence for now: the next `send` waits (KIP-219)."""
        return time.monotonic() < self._quiet_until

    def version_for(self, request: type[Any], most: int | None = None, least: int = 0) -> int:
        """The highest version that both sides speak, not above `most`, nor below `least`.

        Raises:
            UnsupportedVersion: there is none; names both ranges.
        """
        return self._versions.highest_for(request, most, least)

    def request(self, request: Any, deadline: Deadline, most: int | None = None) -> Any:
        """Send `request` in a version up to `most`, wait for its response, return that."""
        if self._in_flight:
            api = self._in_flight[0].response.API_NAME
            raise LocalProtocolError(f"{api} is still unanswered")
        self.send(request, deadline, self.version_for(type(request), most))
        return self.receive(deadline).message

    def send(
        self,
        request: Any,
        deadline: Deadline,
        version: int | None = None,
        *,
        is_answered: bool = True,
        stall_s: float | None = None,
    ) -> None:
        """Send without waiting for the response; `receive` gives responses in this order.

        Args:
            request: what to send.
            deadline: when to give up; the connection is closed then.
            version: None: the best one.
            is_answered: a Produce with acks=0 is not.
            stall_s: for how long to wait where the kernel takes nothing; what is left then is sent
                by `take_in`. None: until the deadline. Who observes the connection is told of all
                of it now.

        Raises:
            UnsupportedVersion: the newest version that the broker speaks cannot carry the request.
        """
        self._check_free("send")
        self._send_rest(deadline)
        if not self._in_flight and time.monotonic() >= self._renew_login_at:
            self._renew_login(deadline)
        chosen = self.version_for(type(request)) if version is None else version
        correlation_id = self._next_correlation_id
        try:
            frame = request_pieces(request, chosen, correlation_id, self._config.client_id)
        except LocalProtocolError as error:
            self._versions.blame(type(request), chosen, error)
            raise
        self._keep_quiet(deadline)
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        if is_answered:
            expected = response_class(type(request).API_KEY)
            self._in_flight.append(_InFlight(correlation_id, expected, chosen, time.monotonic()))
        with _closing_on_error(self):
            # Taken first: the answer can be on its way before the system call comes back.
            began_ns = time_ns() if self._on_frame else 0
            self._unsent = list(frame)
            if stall_s is None:
                self._send_rest(deadline)
            else:
                self._send_more(stall_s)
            if self._on_frame and request.API_KEY != _SASL_AUTHENTICATE:
                pieces = [frame[0][SIZE_PREFIX_BYTES:], *frame[1:]]
                self._on_frame("sent", pieces, began_ns)
        _log.debug(
            "%s <- %s v%d #%d, %d bytes",
            self.endpoint,
            request.API_NAME,
            chosen,
            correlation_id,
            sum(map(len, frame)),
        )

    def take_in(self, make_buffer: MakeBuffer = fresh_buffer, flow_s: float = 0.0) -> bool:
        """Take what has come of the next response; whether `receive` will not wait for it.

        What is left to send of a request goes, too, as far as it goes. What came is kept for
        `receive` and `begin`, and what went wrong for `receive` to raise.

        Args:
            make_buffer: as for `receive`, which will not need its own.
            flow_s: how long to wait for more where something has come.
        """
        self._check_not_arriving("receive")
        is_there = self._taken is not None and self._taken.is_whole
        if is_there or not self.is_open:
            return True
        if not self._in_flight:
            return self._transport.is_readable()
        try:
            with _closing_on_error(self):
                # What has come counts, even if nothing more can be sent.
                if self._take_some(make_buffer, flow_s):
                    return True
                self._send_more()
                return False
        except KafkaProtoError as error:
            self._failure = error
            return True

    def receive(self, deadline: Deadline, make_buffer: MakeBuffer = fresh_buffer) -> Reply[Any]:
        """The response to the oldest request in flight.

        Args:
            deadline: when to give up; the connection is closed then.
            make_buffer: gives memory for the frame. Fields of type `records` are views into it.
        """
        return self.finish(self.begin(deadline, make_buffer), deadline)

    def begin(
        self,
        deadline: Deadline,
        make_buffer: MakeBuffer,
        piece_bytes: int | None = None,
        *,
        thread: bool = False,
    ) -> Arrival:
        """The start of the response to the oldest request in flight: all of it, or a piece.

        Nothing else can be sent or received here until `finish` gave the response.

        Args:
            deadline: when to give up; the connection is closed then.
            make_buffer: as for `receive`.
            piece_bytes: how much to wait for; None: all. A rest of less than two pieces is taken
                whole.
            thread: whether a thread receives the pieces behind the first, see `Arrival.inflow`.

        Raises:
            OutOfMemory: names the size of the answer.
        """
        self._check_free("receive")
        if not self._in_flight:
            raise LocalProtocolError("no request is in flight")
        if self._taken is None or not self._taken.is_whole:
            self._send_rest(deadline)
        arrival = self._arriving = self._taken or Arrival()
        self._taken = None
        with _closing_on_error(self):
            try:
                if not arrival.is_sized:
                    self._transport.receive_into(arrival.rest, deadline)
                    arrival.note(len(arrival.rest))
                    self._make_room(arrival, make_buffer)
                self._receive(arrival, piece_bytes, deadline)
            except ConnectionFailed as error:
                raise self._explain_end(error) from error
            waiting = self._in_flight[0]
            self._check_answers(waiting, arrival.payload)
            if not arrival.is_whole:
                seen = arrival.payload[: arrival.arrived]
                arrival.front = response_front(waiting.response, seen, waiting.version)
            if arrival.front is not None and piece_bytes is not None:
                self._transport.receive_ahead(
                    arrival, arrival.front.pos, piece_bytes, deadline, thread=thread
                )
        return arrival

    def more(self, arrival: Arrival, piece_bytes: int, deadline: Deadline) -> None:
        """Wait for another piece of a response."""
        self._check_open("receive")
        with _closing_on_error(self):
            self._receive(arrival, piece_bytes, deadline)

    def finish(self, arrival: Arrival, deadline: Deadline) -> Reply[Any]:
        """The response that `begin` began, once all of it is there."""
        self._check_open("receive")
        with _closing_on_error(self):
            self._receive(arrival, None, deadline)
            self._let_go_of_arriving()
            waiting = self._in_flight.popleft()
            message = self._decode(waiting, arrival.payload)
        self._was_served = self._was_served or waiting.response is not ApiVersionsResponse
        latency_s = time.monotonic() - waiting.sent_at
        self._note_throttle(getattr(message, "throttle_time_ms", 0))
        _log.debug(
            "%s -> %s v%d #%d, %d bytes, %.1f ms",
            self.endpoint,
            waiting.response.API_NAME,
            waiting.version,
            waiting.correlation_id,
            len(arrival.payload),
            latency_s * 1e3,
        )
        return Reply(message, len(arrival.payload), latency_s)

    def close(self) -> None:
        """Close; what is in flight is lost. Again does no harm."""
        self.is_open = False
        self._in_flight.clear()
        self._unsent = []
        self._taken = None
        self._let_go_of_arriving()
        self._transport.close()

    def _let_go_of_arriving(self) -> None:
        """Nothing is received for it from here on; its memory and the socket are for others."""
        if self._arriving is not None and self._arriving.inflow is not None:
            self._arriving.inflow.stop()
        self._arriving = None

    def _check_open(self, stage: str) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if not self.is_open:
            raise ConnectionFailed(str(self.endpoint), stage, "the connection was closed before")

    def _check_free(self, stage: str) -> None:
        self._check_open(stage)
        self._check_not_arriving(stage)

    def _check_not_arriving(self, stage: str) -> None:
        if self.is_open and self._arriving is not None:
            api = self._in_flight[0].response.API_NAME
            raise LocalProtocolError(f"cannot {stage}: the answer to {api} is still coming")

    # Handshake

    def _learn_versions(self, deadline: Deadline) -> None:
        """ApiVersions, in a version that brokers know, else in one that the broker names."""
        try:
            answer = self._ask_versions(_FIRST_API_VERSIONS, deadline)
            if answer.error_code == UNSUPPORTED_VERSION:
                self._versions.note(answer)
                answer = self._ask_versions(self._versions.to_ask_with(), deadline)
        except ConnectionFailed as error:
            if error.stage == TLS_STAGE:
                raise
            hint = hints.of_handshake(self._config)
            raise ConnectionFailed(error.broker, "handshake", f"{error.reason} ({hint})") from error
        except DeadlineExceeded as error:
            what = f"broker {self.endpoint}: handshake ({hints.SILENT})"
            raise DeadlineExceeded(what, error.timeout_s, error.attempts) from error
        if answer.error_code:
            raise BrokerError(answer.error_code, "ApiVersions", f"broker {self.endpoint}")
        self._versions.note(answer)

    def _log_in(self, deadline: Deadline) -> None:
        # Those pay for hashes, and for what asks for tokens, who log in.
        from pyspark_kafkaproto.net.authentication import authenticate  # noqa: PLC0415

        self._renew_login_at, self.login_ends_at = authenticate(self, self._config, deadline)

    def _renew_login(self, deadline: Deadline) -> None:
        """Say who we are again; nothing is in flight, so that nothing is lost where this fails."""
        self._renew_login_at = float("inf")  # what is said here is sent like all else
        with _closing_on_error(self):
            self._log_in(deadline)

    def _explain_end(self, error: ConnectionFailed) -> ConnectionFailed:
        """A listener with SASL answers ApiVersions to anybody, and hangs up at what comes next."""
        is_known = self._versions.are_known
        is_first = is_known and not self._was_served and not self._config.uses_sasl
        if not is_first:
            return error
        why = f"{error.reason} at the first request ({hints.of_first_request(self._config)})"
        return ConnectionFailed(error.broker, error.stage, why)

    def _ask_versions(self, version: int, deadline: Deadline) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name="pyspark-kafkaproto", client_software_version=__version__
        )
        self.send(request, deadline, version=version)
        answer: ApiVersionsResponse = self.receive(deadline).message
        return answer

    # Frames

    def _send_more(self, stall_s: float = 0.0) -> None:
        """What goes of a request that has not left as a whole, until nothing goes for so long."""
        while self._unsent and (count := self._transport.send_some(self._unsent, stall_s)):
            self._unsent = _without(self._unsent, count)

    def _send_rest(self, deadline: Deadline) -> None:
        """All of it."""
        if self._unsent:
            with _closing_on_error(self):
                for piece in self._unsent:
                    self._transport.send(piece, deadline)
            self._unsent = []

    def _receive(self, arrival: Arrival, piece_bytes: int | None, deadline: Deadline) -> None:
        """Receive another piece, or all of the rest if that is less than two pieces; None: all."""
        start, size = arrival.arrived, len(arrival.payload)
        stop = size
        if piece_bytes is not None and size - start >= 2 * piece_bytes:
            stop = start + piece_bytes
        if start < stop:
            self._transport.receive_rest(arrival, stop, deadline)
        self._show(arrival)

    def _take_some(self, make_buffer: MakeBuffer, flow_s: float) -> bool:
        """Receive what is there of the next response, and what flows; whether that was all."""
        arrival = self._taken = self._taken or Arrival()
        deadline, flow = Deadline.after(0.0), Deadline.after(flow_s)
        while not arrival.is_whole:
            is_size = not arrival.is_sized
            try:
                count = self._transport.receive_some(arrival.rest, deadline)
            except ConnectionFailed as error:
                raise self._explain_end(error) from error
            if not count:
                return False
            arrival.note(count)
            self.heard_at = time.monotonic()
            deadline = flow
            if is_size:
                self._make_room(arrival, make_buffer)
        self._show(arrival)
        return True

    def _show(self, arrival: Arrival) -> None:
        """Tell who observes of a frame that is whole now."""
        is_secret = self._in_flight[0].response.API_KEY == _SASL_AUTHENTICATE
        if self._on_frame and arrival.is_whole and not is_secret and not arrival.is_shown:
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
            raise OutOfMemory(str(self.endpoint), size_bytes, self._config.prefix) from error

    def _checked_size(self, prefix: bytes) -> int:
        most = self._config.receive_message_max_bytes
        why = self._config.named("receive.message.max.bytes")
        if not self._versions.are_known and most > _HANDSHAKE_FRAME_BYTES:
            most, why = _HANDSHAKE_FRAME_BYTES, "before versions are agreed on"
        try:
            return frame_size(prefix, most)
        except RemoteProtocolError as error:
            reason = f"{error.reason} ({why}){hints.of_bytes(prefix, self._config)}"
            raise RemoteProtocolError(reason, where=f"broker {self.endpoint}") from None

    def _check_answers(self, waiting: _InFlight, payload: memoryview) -> None:
        found = peek_correlation_id(payload)
        if found != waiting.correlation_id:
            raise RemoteProtocolError(
                f"response has correlation id {found}, expected {waiting.correlation_id}",
                where=f"broker {self.endpoint}, {waiting.response.API_NAME}",
            )

    def _decode(self, waiting: _InFlight, payload: memoryview) -> Any:
        version = waiting.version
        if waiting.response is ApiVersionsResponse and _refuses_version(payload):
            version = 0
        _, message = decode_response(waiting.response, payload, version)
        return message

    # Throttling

    def _note_throttle(self, throttle_time_ms: int) -> None:
        if throttle_time_ms > 0:
            until = time.monotonic() + throttle_time_ms / 1000
            self._quiet_until = max(self._quiet_until, until)
            _log.info("%s throttles us for %d ms", self.endpoint, throttle_time_ms)

    def _keep_quiet(self, deadline: Deadline) -> None:
        """Wait until the throttle time has passed: a broker mutes who talks before (KIP-219)."""
        wait_s = self._quiet_until - time.monotonic()
        if wait_s <= 0:
            return
        if wait_s >= deadline.remaining_s:
            raise DeadlineExceeded(
                f"broker {self.endpoint} throttles this client for another {wait_s:.1f} s",
                deadline.timeout_s,
            )
        time.sleep(wait_s)


class _closing_on_error:  # noqa: N801 - reads as the statement it is
    """Close the connection when the block fails, whatever the failure (Ctrl-C too)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self._connection.close()


def _refuses_version(payload: memoryview) -> bool:
    """Whether an ApiVersions answer is error 35, which always has the shape of version 0."""
    return int.from_bytes(payload[4:6], signed=True) == UNSUPPORTED_VERSION


def _without(pieces: list[memoryview], count: int) -> list[memoryview]:
    """What stands behind the first `count` bytes."""
    for number, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[number + 1 :]]
        count -= len(piece)
    return []
