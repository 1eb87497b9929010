"""Frames: the size in front, and the headers of requests and responses. No I/O.

A request header names API, version and correlation id, then the client id, which stays a classic
nullable string in every version; a flexible request adds tagged fields behind it (header v2, else
v1). A response header is the correlation id, with tagged fields in flexible versions (v1, else
v0), but never in a response to ApiVersions: its header must be readable before a version is known.
Header v0 of requests had no client id; only ControlledShutdown v0 used it, which no client sends.
Tagged fields of headers are skipped: no version of Kafka defines one that matters to a client.

Source: "Protocol primitive types" and "Headers" of the protocol guide, KIP-482, KIP-511.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import NamedTuple, TypeVar

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire.cursor import Buffer, Cursor, Writer
from pyspark_kafkaproto.wire.declaration import Message, Request, Response
from pyspark_kafkaproto.wire.front import Front, read_front
from pyspark_kafkaproto.wire.path import UnwritableText, UnwritableValue, inside, within
from pyspark_kafkaproto.wire.quick import Unusual
from pyspark_kafkaproto.wire.schema import read_last, read_raw_tags, write
from pyspark_kafkaproto.wire.types import NULL, SHORT, Text

AnyRequest = TypeVar("AnyRequest", bound=Request)
AnyResponse = TypeVar("AnyResponse", bound=Response)

SIZE_PREFIX_BYTES = 4
CORRELATION_BYTES = 4  # with which a response begins

REQUEST_START = Layout(">hhi")
"""API key, version and correlation id, with which every request begins."""

CLIENT_ID_POS = 10  # in a request: behind API key, version, correlation id and its own size

_SIZE = Layout(">i")
_CORRELATION = Layout(">i")
_CLIENT_ID = Text(SHORT, nullable=True)
_CLIENT_ID_SIZE = Layout(">h")


class RequestHeader(NamedTuple):
    """What stands in front of a request's body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def frame_size(prefix: Buffer, limit_bytes: int) -> int:
    """The size of the frame behind its four-byte prefix.

    Raises:
        RemoteProtocolError: the size is negative, less than a correlation id, or over the limit.
    """
    (size,) = _SIZE.unpack(prefix)
    if not _CORRELATION.size <= size <= limit_bytes:
        raise RemoteProtocolError(
            f"a frame of {size} bytes: allowed are {_CORRELATION.size} to {limit_bytes}"
        )
    return int(size)


def encode_request(
    message: Request, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """A whole request frame: size, header, body; LocalProtocolError for what cannot be written."""
    return _request(message, version, correlation_id, client_id).getvalue()


def request_pieces(
    message: Request,
    version: int,
    correlation_id: int,
    client_id: str | None,
    body: Writer | None = None,
) -> list[memoryview]:
    """The same frame in pieces, in which records stand where they stood: they are not copied.

    Args:
        message: what is sent.
        version: in which version.
        correlation_id: of the header, as is `client_id`.
        client_id: None where there is none.
        body: of `body_of`, where it was encoded before.
    """
    return _request(message, version, correlation_id, client_id, body).pieces()


def body_of(message: Message, version: int) -> Writer:
    """What stands behind the header; errors as for `encode`."""
    body = Writer()
    write(message, body, version)
    return body


def _request(
    message: Request,
    version: int,
    correlation_id: int,
    client_id: str | None,
    body: Writer | None = None,
) -> Writer:
    header = Writer()
    try:
        header.pack(REQUEST_START, message.API_KEY, version, correlation_id)
        _CLIENT_ID.write(header, client_id)
    except UnwritableText as error:
        raise within(inside(error, "client.id"), f"{message.title(version)}, header") from None
    except UnwritableValue as error:
        raise within(error, f"{message.title(version)}, header") from None
    if has_header_tags(type(message), version):
        header.unsigned_varint(0)
    return _framed(header, body_of(message, version) if body is None else body)


def encode_response(message: Response, version: int, correlation_id: int) -> bytes:
    """A whole response frame: size, header, body; errors as for `encode_request`."""
    header = Writer()
    header.pack(_CORRELATION, correlation_id)
    if has_header_tags(type(message), version):
        header.unsigned_varint(0)
    return _framed(header, body_of(message, version)).getvalue()


def peek_correlation_id(payload: Buffer) -> int:
    """The correlation id of a response frame without its size, whatever API it answers."""
    (correlation_id,) = Cursor(payload).unpack(_CORRELATION)
    return int(correlation_id)


def peek_request(payload: Buffer) -> tuple[int, int, int]:
    """API key, version and correlation id of a request frame without its size."""
    api_key, version, correlation_id = Cursor(payload).unpack(REQUEST_START)
    return api_key, version, correlation_id


def decode_request(cls: type[AnyRequest], payload: Buffer) -> tuple[RequestHeader, AnyRequest]:
    """Header and body of a request frame without its size, in the version that it names.

    Raises:
        RemoteProtocolError: the bytes are not such a request, or of a version not known here.
    """
    cursor = Cursor(payload)
    try:
        header = _read_request_header(cls, cursor)
    except RemoteProtocolError as error:
        raise within(error, f"{cls.API_NAME} request, header") from None
    return header, read_last(cls, cursor, header.api_version)


def _read_request_header(cls: type[Request], cursor: Cursor) -> RequestHeader:
    api_key, version, correlation_id = cursor.unpack(REQUEST_START)
    if api_key != cls.API_KEY or version not in cls.VERSIONS:
        raise RemoteProtocolError(
            f"API key {api_key}, version {version}: expected {cls.API_KEY}, {cls.VERSIONS}"
        )
    client_id = _read_client_id(cursor)
    if has_header_tags(cls, version):
        read_raw_tags(cursor)
    return RequestHeader(api_key, version, correlation_id, client_id)


def _read_client_id(cursor: Cursor) -> str | None:
    """What is not UTF-8 in it is replaced, as brokers do: a client may be named in Latin-1."""
    size = SHORT.read(cursor)
    return None if size == NULL else str(cursor.take(size), "utf-8", "replace")


def decode_response(
    cls: type[AnyResponse], payload: Buffer, version: int
) -> tuple[int, AnyResponse]:
    """Correlation id and body of a response frame without its size.

    A broker that does not know the version of an ApiVersions request answers in v0, with error
    35: whoever sent that request tries `version` and then 0.

    Raises:
        RemoteProtocolError: the bytes are not such a response.
        LocalProtocolError: the class has no such version.
    """
    cursor = Cursor(payload)
    try:
        correlation_id = _read_response_header(cls, cursor, version)
    except RemoteProtocolError as error:
        raise within(error, f"{cls.title(version)}, header") from None
    return correlation_id, read_last(cls, cursor, version)


def _read_response_header(cls: type[Response], cursor: Cursor, version: int) -> int:
    (correlation_id,) = cursor.unpack(_CORRELATION)
    if has_header_tags(cls, version):
        read_raw_tags(cursor)
    return int(correlation_id)


def response_front(cls: type[Response], payload: Buffer, version: int) -> Front | None:
    """What stands before the first records of a response frame of which `payload` is the start.

    None where the start does not say, or is damaged: `decode_response` says why, once the whole
    frame is there.
    """
    cursor = Cursor(payload)
    try:
        _read_response_header(cls, cursor, version)
        return read_front(cls, cursor, version)
    except RemoteProtocolError:
        return None


def has_header_tags(cls: type[Message], version: int) -> bool:
    """Whether the header of a request or response ends with tagged fields."""
    return cls.is_flexible(version) and not (issubclass(cls, Response) and not cls.HAS_HEADER_TAGS)


def quick_body_position(data: memoryview, *, is_request: bool, has_tags: bool) -> int:
    """Where the body begins in a frame without its size, for a quick reader.

    Raises:
        UNEXPECTED: its header is not a usual one: the functions above read it.
    """
    pos = _CORRELATION.size
    if is_request:
        size: int
        (size,) = _CLIENT_ID_SIZE.unpack_from(data, REQUEST_START.size)
        if size < -1:
            raise Unusual
        pos = CLIENT_ID_POS + max(0, size)
    if has_tags:
        if data[pos]:  # there are some
            raise Unusual
        pos += 1
    return pos


def _framed(header: Writer, body: Writer) -> Writer:
    frame = Writer()
    frame.pack(_SIZE, header.size + body.size)
    frame.append(header)
    frame.append(body)
    return frame
