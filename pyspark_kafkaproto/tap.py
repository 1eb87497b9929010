"""A recording proxy in front of a cluster: net and capture joined.

Clients are pointed at the tap and stay on it: wherever a broker tells its addresses, or those of
other brokers, each is replaced by a port of the tap's own that leads there. What is recorded is
what was really said, before that replacement, with secrets left out. Plaintext listeners only:
the tap has no key to anybody's TLS. What cannot be decoded is passed on as it is.
Source: the messages that carry addresses of brokers (Metadata, FindCoordinator, DescribeCluster;
KIP-951 for Produce and Fetch).
"""

from __future__ import annotations

import logging
import threading
from ipaddress import ip_address
from typing import Any, Self

from pyspark_kafkaproto.capture.recorder import Address, Recorder, Track, Write
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.messages import find_api, key_of, response_class
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.relay import FrameStream, Listener
from pyspark_kafkaproto.net.transport import Endpoint
from pyspark_kafkaproto.wire.declaration import Struct
from pyspark_kafkaproto.wire.frame import (
    REQUEST_START,
    SIZE_PREFIX_BYTES,
    decode_response,
    encode_response,
    peek_correlation_id,
    peek_request,
)

_log = logging.getLogger(__name__)

# APIs whose responses tell where brokers are, from the version that does.
_TELLING = {
    key_of("Produce"): 10,
    key_of("Fetch"): 16,
    key_of("Metadata"): 0,
    key_of("FindCoordinator"): 0,
    key_of("DescribeCluster"): 0,
    key_of("ShareFetch"): 0,
    key_of("ShareAcknowledge"): 0,
}
_PENDING_MAX = 10_000
_CONNECT_S = 10.0
_CLOSE_S = 10.0


class Tap:
    """Listens, forwards, records, until it is closed.

    Args:
        port: where clients connect; 0 for any free port.
        to: a broker of the cluster.
        write: takes the bytes of the pcapng file, in order; the first once the port is taken.
        host: the address to listen on, which is also what clients are told.

    Raises:
        ConfigError: nobody can listen there, or it is every address of the machine (0.0.0.0, ::).
    """

    def __init__(self, port: int, to: Endpoint, write: Write, host: str = "127.0.0.1") -> None:
        if _is_unspecified(host):
            reason = "one address of this machine: it is what clients are told to connect to"
            raise ConfigError("--host", host, reason)
        self._host = host
        # Of C: an interrupt leaves one of Python's, such as a Condition's, taken for ever.
        self._lock = threading.Lock()
        self._end = threading.Lock()  # let go of with the last connection of a closed tap
        self._end.acquire()
        self._clients: set[FrameStream] = set()  # also those that have no broker yet
        self._upstreams: set[FrameStream] = set()
        self._is_closed = False
        try:
            first = Listener(host, port, lambda stream: self._serve(stream, to))
        except OSError as error:
            reason = f"{host} cannot listen there: {error.strerror}"
            raise ConfigError("--listen", port, reason) from error
        self._listeners = {to: first}
        self.endpoint = first.endpoint
        try:
            self._recorder = Recorder(write)
        except BaseException:
            first.close()
            raise
        first.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, end every connection, and wait until all of it is written."""
        with self._lock:
            self._is_closed = True
            streams = self._clients | self._upstreams
        self._close_listeners()
        for stream in streams:
            stream.close()
        if self._upstreams:
            if self._end.acquire(timeout=_CLOSE_S):
                self._end.release()  # for whoever closes it, too
            else:
                _log.warning("the end of the recording is not written after %g s", _CLOSE_S)
        self._close_listeners()  # a broker's last words may have told a new address

    def _close_listeners(self) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener.close()

    def _listen(self, broker: Endpoint) -> Endpoint:
        """Where the tap takes connections for `broker`; OSError: there is no port left for it."""
        with self._lock:
            if broker not in self._listeners:
                listener = Listener(self._host, 0, lambda stream: self._serve(stream, broker))
                self._listeners[broker] = listener
                listener.start()
            return self._listeners[broker].endpoint

    def _serve(self, client: FrameStream, broker: Endpoint) -> None:
        """One client's connection, to its end."""
        with self._lock:
            is_late = self._is_closed
            self._clients |= set() if is_late else {client}
        try:
            if not is_late:
                self._lead(client, broker)
        finally:
            client.close()
            with self._lock:
                self._clients.discard(client)

    def _lead(self, client: FrameStream, broker: Endpoint) -> None:
        """Join it to the broker."""
        try:
            upstream = FrameStream.connect(broker, Deadline.after(_CONNECT_S))
        except KafkaProtoError as error:
            if not self._is_closed:  # else whoever has closed it has ended the client
                _log.warning("%s is turned away: %s", client.there, error)
            return
        with self._lock:
            is_late = self._is_closed
            self._upstreams |= set() if is_late else {upstream}
        if is_late:
            upstream.close()
            return
        try:
            self._record(client, upstream, broker)
        finally:
            upstream.close()
            with self._lock:
                self._upstreams.discard(upstream)
                if self._is_closed and not self._upstreams:
                    self._end.release()

    def _record(self, client: FrameStream, upstream: FrameStream, broker: Endpoint) -> None:
        track = self._recorder.connection(_address(client.there), _address(broker))
        talk = _Talk(track, self._listen)
        down = threading.Thread(
            target=_pump,
            name=f"tap, answers of {broker}",
            args=(upstream, client, talk.response),
            daemon=True,
        )
        down.start()
        _pump(client, upstream, talk.request)
        down.join()
        track.close()


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host or "0.0.0.0").is_unspecified  # noqa: S104  refused, not bound to
    except ValueError:
        return False


def _address(endpoint: Endpoint) -> Address:
    return Address(endpoint.host, endpoint.port)


def _pump(source: FrameStream, target: FrameStream, change: Any) -> None:
    """Frames from one end to the other, until either is over; then both are."""
    try:
        while (payload := source.receive()) is not None:
            if not target.send(change(payload)):
                break
    except KafkaProtoError as error:
        _log.warning("%s: %s", source.there, error)
    finally:
        source.close()
        target.close()


class _Talk:
    """What one connection says: recorded, and addresses in it replaced."""

    def __init__(self, track: Track, listen: Any) -> None:
        self._track = track
        self._listen = listen
        self._telling: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()  # each direction has a thread

    def request(self, payload: bytes) -> bytes:
        """A client's frame, passed on unchanged."""
        self._track.sent(payload)
        if len(payload) >= REQUEST_START.size:
            api_key, version, correlation_id = peek_request(payload)
            if version >= _TELLING.get(api_key, 1 << 15):
                self._expect(correlation_id, api_key, version)
        return payload

    def _expect(self, correlation_id: int, api_key: int, version: int) -> None:
        """An answer that tells addresses may come; the oldest of too many never will."""
        with self._lock:
            self._telling.pop(correlation_id, None)  # to stand last
            self._telling[correlation_id] = api_key, version
            if len(self._telling) > _PENDING_MAX:
                del self._telling[next(iter(self._telling))]

    def _expected(self, correlation_id: int) -> tuple[int, int] | None:
        """What is answered. Answers come in order: what was asked before has none (acks=0)."""
        with self._lock:
            asked = self._telling.get(correlation_id)
            while asked is not None and correlation_id in self._telling:
                del self._telling[next(iter(self._telling))]
            return asked

    def response(self, payload: bytes) -> bytes:
        """A broker's frame, with the tap's addresses in place of brokers'."""
        self._track.received(payload)
        if not self._telling or len(payload) < SIZE_PREFIX_BYTES:
            return payload
        asked = self._expected(peek_correlation_id(payload))
        return payload if asked is None else self._replaced(payload, *asked)

    def _replaced(self, payload: bytes, api_key: int, version: int) -> bytes:
        try:
            number, message = decode_response(response_class(api_key), payload, version)
            changed = self._with_our_addresses(message)
            if changed is message:
                return payload
            return encode_response(changed, version, number)[SIZE_PREFIX_BYTES:]
        except (KafkaProtoError, OSError) as error:
            api = find_api(api_key)
            _log.warning("%s is passed on as it is: %s", api.name if api else api_key, error)
            return payload

    def _with_our_addresses(self, value: Any) -> Any:
        """The same value where it holds no address, else a copy with ours."""
        if isinstance(value, tuple):
            changed = tuple(map(self._with_our_addresses, value))
            return value if all(a is b for a, b in zip(changed, value, strict=True)) else changed
        if not isinstance(value, Struct):
            return value
        fields = {name: getattr(value, name) for name in type(value).NAMES}
        changed_fields = {name: self._with_our_addresses(each) for name, each in fields.items()}
        if fields.get("host") and fields.get("port", 0) > 0:
            ours = self._listen(Endpoint(fields["host"], fields["port"]))
            changed_fields |= {"host": ours.host, "port": ours.port}
        if all(changed_fields[name] is fields[name] for name in fields):
            return value
        return type(value).of(changed_fields.values())
