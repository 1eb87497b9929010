"""One connection to one broker: its life, and requests that may be sent ahead of their answers.

It is opened (`handshake`, `authentication`), sends (`outgoing`), receives (`incoming`), keeps quiet
where the broker wants that, renews its login, and is closed when anything went wrong, because what
follows on it could be anybody's answer. Not for use by two threads at once.
Protocol: Kafka's protocol guide; KIP-35 and KIP-511 (ApiVersions), KIP-219 (throttling), KIP-368
(logins that end and are renewed).
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
    Throttled,
)
from pyspark_kafkaproto.messages import response_class
from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.handshake import agree_on_versions
from pyspark_kafkaproto.net.incoming import SASL_AUTHENTICATE, Incoming, InFlight, MakeBuffer
from pyspark_kafkaproto.net.observing import OnFrame, observer_of
from pyspark_kafkaproto.net.outgoing import Outgoing
from pyspark_kafkaproto.net.transport import Endpoint, Transport
from pyspark_kafkaproto.net.versions import BrokerVersions, version_of_answer
from pyspark_kafkaproto.wire.frame import decode_response, request_pieces
from pyspark_kafkaproto.wire.path import within
from pyspark_kafkaproto.wire.standing import Standing, message_of

_log = logging.getLogger(__name__)
_R = TypeVar("_R")
_BEGINNING_BYTES: Final = 1024  # of an answer that may take its time from there on


class Reply(NamedTuple, Generic[_R]):
    """A response with what was measured about it."""

    message: _R
    size_bytes: int
    latency_s: float


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
        self._versions = BrokerVersions(self.endpoint)
        self._outgoing = Outgoing(transport, on_frame)
        self._incoming = Incoming(transport, config, self._versions, on_frame)
        self._next_correlation_id = 0
        self._quiet_until, self._quiet_s = 0.0, 0.0
        self._renew_login_at, self.login_ends_at = float("inf"), 0.0  # (time.monotonic)
        self._failure: KafkaProtoError | None = None  # what `take_in` found instead of an answer

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
        try:
            if on_frame is None:
                on_frame = observer_of(config, transport.local_address(), endpoint)
            connection = cls(transport, config, on_frame)
            agree_on_versions(connection, connection._versions, config, setup)
            if config.uses_sasl:
                connection._log_in(setup)
        except BaseException:
            transport.close()
            raise
        return connection

    @property
    def in_flight(self) -> int:
        """Requests sent whose response was not taken yet."""
        return len(self._incoming.in_flight)

    @property
    def is_idle(self) -> bool:
        """Whether the next request can be sent on it: open at both ends, nothing outstanding."""
        return self.is_open and not self.in_flight and not self._transport.is_readable()

    @property
    def heard_at(self) -> float:
        """When `take_in` found something last (time.monotonic); 0: never."""
        return self._incoming.heard_at

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
        return bool(self._outgoing.unsent)

    @property
    def must_drain(self) -> bool:
        """Whether who sends ahead is to take the answers first.

        Our login is to be renewed (KIP-368), which the next `send` with nothing in flight does; a
        broker ends a connection whose login is over.
        """
        return bool(self._incoming.in_flight) and time.monotonic() >= self._renew_login_at

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

    def request(
        self,
        request: Any,
        deadline: Deadline,
        most: int | None = None,
        begins_s: float | None = None,
    ) -> Any:
        """Send `request` in a version up to `most`, wait for its response, return that.

        With `begins_s` the response has to begin to come within so many seconds.
        """
        if self._incoming.in_flight:
            api = self._incoming.in_flight[0].response.API_NAME
            raise LocalProtocolError(f"{api} is still unanswered")
        version = self.version_for(type(message_of(request)), most)
        try:
            self.send(request, deadline, version)
            if begins_s is None:
                return self.receive(deadline).message
            begins = deadline.sooner(begins_s)
            return self._receive(begins, deadline, fresh_buffer, _BEGINNING_BYTES).message
        except BaseException:  # an interrupt between the two: nobody is left to take the answer
            if self._incoming.in_flight:
                self.close()
            raise

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
            request: what to send; a `Standing` one is encoded once.
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
        if self._outgoing.unsent or time.monotonic() >= self._renew_login_at:
            self._make_way(deadline)
        standing = request if isinstance(request, Standing) else None
        request = message_of(request)
        chosen = self.version_for(type(request)) if version is None else version
        correlation_id = self._next_correlation_id
        try:
            body = None if standing is None else standing.body(chosen)
            frame = request_pieces(request, chosen, correlation_id, self._config.client_id, body)
        except LocalProtocolError as error:
            self._versions.blame(type(request), chosen, error)
            raise
        self._keep_quiet(deadline)
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        is_secret = request.API_KEY == SASL_AUTHENTICATE
        with _closing_on_error(self):
            if is_answered:
                expected = response_class(request.API_KEY)
                sent_at = time.monotonic()
                waiting = InFlight(correlation_id, expected, chosen, sent_at, standing)
                self._incoming.in_flight.append(waiting)
            self._outgoing.send(frame, deadline, stall_s, is_secret=is_secret)
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
        if self._incoming.is_taken or not self.is_open:
            return True
        if not self._incoming.in_flight:
            return self._transport.is_readable()
        try:
            with _closing_on_error(self):
                # What has come counts, even if nothing more can be sent.
                if self._incoming.take_some(make_buffer, flow_s):
                    return True
                self._outgoing.send_more()
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
        return self._receive(deadline, deadline, make_buffer, None)

    def _receive(
        self, begins: Deadline, ends: Deadline, make_buffer: MakeBuffer, piece_bytes: int | None
    ) -> Reply[Any]:
        self._check_due()
        with _closing_on_error(self):  # an interrupt between the two steps is in neither
            return self.finish(self.begin(begins, make_buffer, piece_bytes), ends)

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
        self._check_due()
        with _closing_on_error(self):
            if not self._incoming.is_taken:
                self._outgoing.send_rest(deadline)
            return self._incoming.begin(make_buffer, piece_bytes, deadline, thread=thread)

    def more(self, arrival: Arrival, piece_bytes: int, deadline: Deadline) -> None:
        """Wait for another piece of a response."""
        self._check_open("receive")
        with _closing_on_error(self):
            self._incoming.receive(arrival, piece_bytes, deadline)

    def finish(self, arrival: Arrival, deadline: Deadline) -> Reply[Any]:
        """The response that `begin` began, once all of it is there."""
        self._check_open("receive")
        with _closing_on_error(self):
            waiting = self._incoming.finish(arrival, deadline)
            version = version_of_answer(waiting.response, arrival.payload, waiting.version)
            try:
                if waiting.standing is None:
                    _, message = decode_response(waiting.response, arrival.payload, version)
                else:
                    read = waiting.standing.read_answer
                    message = read(waiting.response, arrival.payload, version)
            except RemoteProtocolError as error:  # of several brokers one may be damaged
                raise within(error, f"broker {self.endpoint}, {error.where}") from None
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
        self._outgoing.drop()
        self._incoming.drop()
        self._transport.close()

    def _check_open(self, stage: str) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if not self.is_open:
            raise ConnectionFailed(str(self.endpoint), stage, "the connection was closed before")

    def _check_free(self, stage: str) -> None:
        self._check_open(stage)
        self._check_not_arriving(stage)

    def _check_due(self) -> None:
        """An answer is to come, of which nobody has begun with anything."""
        self._check_free("receive")
        if not self._incoming.in_flight:
            raise LocalProtocolError("no request is in flight")

    def _check_not_arriving(self, stage: str) -> None:
        if self.is_open and self._incoming.arriving is not None:
            api = self._incoming.in_flight[0].response.API_NAME
            raise LocalProtocolError(f"cannot {stage}: the answer to {api} is still coming")

    # What comes before a request

    def _make_way(self, deadline: Deadline) -> None:
        """Send what is left of the last request; then say again who we are, if that is due.

        With nothing in flight alone: so nothing is lost where the login fails.
        """
        with _closing_on_error(self):
            self._outgoing.send_rest(deadline)
        if self._incoming.in_flight or time.monotonic() < self._renew_login_at:
            return
        self._keep_quiet(deadline)  # nothing is under way: who may not wait keeps the connection
        with _closing_on_error(self):
            self._renew_login_at = float("inf")  # what is said here is sent like all else
            self._log_in(deadline)

    def _log_in(self, deadline: Deadline) -> None:
        # Those pay for hashes, and for what asks for tokens, who log in.
        from pyspark_kafkaproto.net.authentication import authenticate  # noqa: PLC0415

        self._renew_login_at, self.login_ends_at = authenticate(self, self._config, deadline)

    def _note_throttle(self, throttle_time_ms: int) -> None:
        if throttle_time_ms > 0:
            until = time.monotonic() + throttle_time_ms / 1000
            if until > self._quiet_until:
                self._quiet_until, self._quiet_s = until, throttle_time_ms / 1000
            _log.info("%s throttles us for %d ms", self.endpoint, throttle_time_ms)

    def _keep_quiet(self, deadline: Deadline) -> None:
        """Wait until the throttle time has passed: a broker mutes who talks before (KIP-219)."""
        wait_s = self._quiet_until - time.monotonic()
        if wait_s <= 0:
            return
        if wait_s >= deadline.remaining_s:
            raise Throttled(str(self.endpoint), self._quiet_s, deadline.timeout_s)
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
