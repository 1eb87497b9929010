"""One message of a conversation: who said what to whom, its fields read when somebody asks.

A list of many messages must not pay for what it does not show, so nothing but the header is read
before `body` or `tree` is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pyspark_kafkaproto.error_codes import UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages import find_api, key_of, request_class, response_class
from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.declaration import Message as Declared
from pyspark_kafkaproto.wire.frame import (
    CLIENT_ID_POS,
    REQUEST_START,
    decode_request,
    decode_response,
)

API_VERSIONS, SASL_HANDSHAKE = key_of("ApiVersions"), key_of("SaslHandshake")
FETCH = key_of("Fetch")
# The log of the controllers, which brokers follow with Fetch: its records hold SCRAM credentials
# and the values of secret settings. It is the only topic of such a Fetch.
_LOG_NAME, _LOG_ID = "__cluster_metadata", bytes(15) + b"\x01"
METADATA_LOG = frozenset({_LOG_NAME, _LOG_ID})
_ANSWER_FRONT = slice(4, 128)  # behind the correlation id: its first topic is named in there
# Of APIs that only brokers use among themselves there is no class, but they are frames all right.
_API_KEY_MAX = 127
_VERSION_MAX = 40
_TITLES_KEPT = 256
REQUEST, RESPONSE, TOKEN = "request", "response", "token"
NO_NAMES: Mapping[bytes, str] = {}


class Asked(NamedTuple):
    """What is kept of a request until its response comes."""

    number: int
    api_key: int
    version: int
    time_ns: int
    client_id: str | None


class Peers(NamedTuple):
    """The two ends of a connection, each `host:port`, and its number in the capture."""

    number: int
    client: str
    broker: str


class Message:
    """One request, response or bare SASL token.

    Attributes:
        number: counts the messages of a capture, from 1.
        time_ns: when the last of its bytes was captured, in whatever order, nanoseconds since 1970
            UTC.
        peers: between whom.
        kind: REQUEST, RESPONSE or TOKEN.
        api_key: None for a token, and for a response whose request was not captured.
        version: -1 where api_key is None.
        correlation_id: None for a token.
        client_id: the client's name for itself.
        size_bytes: of the frame, without its size prefix.
        payload: the frame, as much of it as there is.
        skipped_bytes: passed over in front of it, because no frame could be found in them.
        latency_ns: from the request's last byte to the response's; None for all but responses.
        answers: the number of the request that a response answers.
        topic_names: topic ids to names, as far as the capture has told so far.
        problem: why its body cannot be read; known after `body` was called.
    """

    __slots__ = (
        "_body",
        "answers",
        "api_key",
        "client_id",
        "correlation_id",
        "kind",
        "latency_ns",
        "number",
        "payload",
        "peers",
        "problem",
        "size_bytes",
        "skipped_bytes",
        "time_ns",
        "topic_names",
        "version",
    )

    def __init__(  # noqa: PLR0913  its facts are many; a dictionary of them would cost each message
        self,
        number: int,
        time_ns: int,
        peers: Peers,
        kind: str,
        *,
        payload: bytes | bytearray,
        size_bytes: int,
        skipped_bytes: int = 0,
        api_key: int | None = None,
        version: int = -1,
        correlation_id: int | None = None,
        client_id: str | None = None,
        latency_ns: int | None = None,
        answers: int | None = None,
        topic_names: Mapping[bytes, str] = NO_NAMES,
    ) -> None:
        self.number = number
        self.time_ns = time_ns
        self.peers = peers
        self.kind = kind
        self.payload = payload
        self.size_bytes = size_bytes
        self.skipped_bytes = skipped_bytes
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.latency_ns = latency_ns
        self.answers = answers
        self.topic_names = topic_names
        self.problem = ""
        self._body: Declared | bool | None = False

    @property
    def api(self) -> str:
        """The API's name; what it is where it has none."""
        return _api(self.kind, self.api_key)

    @property
    def title(self) -> str:
        """API, version and direction."""
        return _title(self.kind, self.api_key, self.version)

    @property
    def lost_bytes(self) -> int:
        """How much of the frame's end is not there."""
        return self.size_bytes - len(self.payload)

    @property
    def is_hidden(self) -> bool:
        """Whether all of its body is secret when its fields cannot be told apart."""
        if self.kind == RESPONSE:
            if self.api_key is None:  # it may answer whatever was not captured
                return True
            if self.api_key == FETCH and names_log(self.payload[_ANSWER_FRONT]):
                return True
        return self.kind == TOKEN or self.api_key in SECRET_APIS

    @property
    def is_read(self) -> bool:
        """Whether `body` was called."""
        return self._body is not False

    def body(self) -> Any:
        """Its fields as an instance of its class; None where `problem` says why not."""
        if self._body is False:
            self._body = None
            try:
                self._body = self._read()
            except (RemoteProtocolError, LocalProtocolError) as error:
                self.problem = str(error)
                if self.is_hidden:
                    self.client_id = None  # where its size is damaged, it holds what follows
                if self.lost_bytes:
                    self.problem = f"{self.lost_bytes} bytes of its end were not captured"
        return self._body

    def body_class(self) -> type[Declared]:
        """The class of its body.

        Raises:
            LocalProtocolError: nobody knows what it is, or the version is not known here.
        """
        if self.api_key is None:
            missing = "SASL's own" if self.kind == TOKEN else "its request was not captured"
            raise LocalProtocolError(f"its fields are not known: {missing}")
        cls: type[Declared]
        is_request = self.kind == REQUEST
        cls = request_class(self.api_key) if is_request else response_class(self.api_key)
        if self.read_version not in cls.VERSIONS:
            raise LocalProtocolError(f"{cls.title(self.version)}: known are {cls.VERSIONS}")
        return cls

    @property
    def read_version(self) -> int:
        """The version of its bytes: a refused ApiVersions is answered in version 0."""
        if self.api_key == API_VERSIONS and self.kind == RESPONSE:
            is_refusal = int.from_bytes(self.payload[4:6]) == UNSUPPORTED_VERSION
            return 0 if is_refusal else self.version
        return self.version

    def _read(self) -> Declared:
        cls = self.body_class()
        if self.kind == REQUEST:
            return decode_request(cls, self.payload)[1]  # type: ignore[type-var]  # a request's
        return decode_response(cls, self.payload, self.read_version)[1]  # type: ignore[type-var]


def _api(kind: str, api_key: int | None) -> str:
    if kind == TOKEN:
        return "SASL token"
    if api_key is None:
        return "unknown"
    return api_name(api_key)


def api_name(api_key: int) -> str:
    """The name of an API; its number where no client uses it, or it is newer."""
    api = find_api(api_key)
    return api.name if api else f"API {api_key}"


@lru_cache(_TITLES_KEPT)
def _title(kind: str, api_key: int | None, version: int) -> str:
    shown = f" v{version}" if version >= 0 else ""
    return f"{_api(kind, api_key)}{shown} {kind}" if kind != TOKEN else _api(kind, api_key)


# What brokers and controllers say among themselves, of which no message is known here.
_ENVELOPE, _FETCH_SNAPSHOT = 58, 59
# Whose bytes are hidden as a whole when they cannot be read field by field. An Envelope holds such
# requests, a FetchSnapshot the SCRAM credentials.
SECRET_APIS = frozenset(
    {
        key_of("SaslAuthenticate"),
        key_of("CreateDelegationToken"),
        key_of("RenewDelegationToken"),
        key_of("ExpireDelegationToken"),
        key_of("DescribeDelegationToken"),
        key_of("DescribeConfigs"),
        key_of("AlterConfigs"),
        key_of("IncrementalAlterConfigs"),
        key_of("AlterUserScramCredentials"),
        _ENVELOPE,
        _FETCH_SNAPSHOT,
    }
)


def names_log(data: Buffer) -> bool:
    """Whether the name or the id of the controllers' log is in there."""
    shown = bytes(data)
    return _LOG_ID in shown or _LOG_NAME.encode() in shown


def is_request(head: bytes, size_bytes: int, *, any_api: bool = False) -> bool:
    """Whether a frame begins like a request.

    Of a frame that a capture has cut, eight bytes are enough. Ids go on below 0 after 2³¹ requests,
    which is so rare, and so common among other bytes, that such a frame needs a version and a
    client id that are right.

    Args:
        head: its first bytes.
        size_bytes: of all of it.
        any_api: like one of an API or a version not known here, too.
    """
    if len(head) < REQUEST_START.size or size_bytes < CLIENT_ID_POS:
        return False
    api_key, version, correlation_id = REQUEST_START.unpack_from(head)
    if not (0 <= api_key <= _API_KEY_MAX and 0 <= version <= _VERSION_MAX):
        return False
    is_doubtful = correlation_id < 0 and not any_api
    if not any_api:
        api = find_api(api_key)
        if api is None or (is_doubtful and version not in api.versions):
            return False
    if len(head) < CLIENT_ID_POS:
        return not is_doubtful
    size = int.from_bytes(head[8:CLIENT_ID_POS], signed=True)
    if not (1 if is_doubtful else -1) <= size <= size_bytes - CLIENT_ID_POS:
        return False
    shown = head[CLIENT_ID_POS : CLIENT_ID_POS + max(0, size)]
    return min(shown, default=32) >= 32
