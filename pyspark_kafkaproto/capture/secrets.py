"""What nobody is to see: the bytes of secrets in a frame, and the frame without them.

Passwords and tokens of SASL, delegation tokens, values of configurations, SCRAM credentials:
what the declarations call secret, the records of the controllers' log, and whole bodies that might
hold one and cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_kafkaproto.capture.frames import HEAD_BYTES
from pyspark_kafkaproto.capture.message import (
    FETCH,
    REQUEST,
    RESPONSE,
    SASL_HANDSHAKE,
    SECRET_APIS,
    Message,
    Peers,
    is_request,
    names_log,
)
from pyspark_kafkaproto.capture.tree import frame_bytes, tree
from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.frame import REQUEST_START, SIZE_PREFIX_BYTES
from pyspark_kafkaproto.wire.trace import Node

_NOBODY = Peers(0, "", "")
_PENDING_MAX = 10_000  # requests that nobody answers; later answers are hidden whole


def secret_ranges(root: Node) -> list[tuple[int, int]]:
    """Where secrets stand in a frame, half-open, in the order of the fields.

    The size in front of a value is none: with it zeroed, nobody could read what follows.
    """
    ranges = [_content(node) for node in root.walk() if node.is_secret and node.start >= 0]
    return [(start, stop) for start, stop in ranges if start < stop]


def _content(node: Node) -> tuple[int, int]:
    """The bytes of a text or of bytes, without their size; all of what could not be read."""
    if node.is_null:
        return node.stop, node.stop
    value = node.value.encode() if isinstance(node.value, str) else node.value
    return (node.start if value is None else node.stop - len(value)), node.stop


def without(frame: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The frame with the content of these ranges zeroed; its size stays."""
    shown = bytearray(frame)
    for start, stop in ranges:
        end = min(stop, len(shown))
        shown[start:end] = bytes(max(0, end - start))
    return bytes(shown)


class Speakers:
    """Follows one connection's frames so far that secrets can be left out of each.

    The APIs that carry none pass untouched and uncopied: nearly all do.
    """

    def __init__(self) -> None:
        self._pending: dict[int, tuple[int, int]] = {}
        self._has_tokens = False
        self._has_lost_track = False  # of more unanswered requests than are kept

    def hide_request(self, payload: Buffer) -> Buffer:
        """A request, or a bare token after the old SaslHandshake; the size stays the same."""
        if self._has_tokens and not is_request(bytes(payload[:HEAD_BYTES]), len(payload)):
            return _hidden_token(payload)
        if len(payload) < REQUEST_START.size:
            return payload
        api_key, version, correlation_id = REQUEST_START.unpack_from(payload)
        self._has_tokens = api_key == SASL_HANDSHAKE and version == 0
        is_secret = api_key in SECRET_APIS
        asks_for_secrets = is_secret or (api_key == FETCH and names_log(payload))
        if asks_for_secrets or self._has_tokens:  # of the latter the answer is no token
            self._expect(correlation_id, api_key, version)
        return _hidden(payload, REQUEST, api_key, version) if is_secret else payload

    def _expect(self, correlation_id: int, api_key: int, version: int) -> None:
        if len(self._pending) < _PENDING_MAX:
            self._pending[correlation_id] = api_key, version
        else:
            self._has_lost_track = True

    def hide_response(self, payload: Buffer) -> Buffer:
        """A response, or a bare token."""
        if not (self._pending or self._has_tokens or self._has_lost_track):
            return payload
        asked = self._pending.pop(int.from_bytes(payload[:4], signed=True), None)
        if asked is not None:
            return _hidden(payload, RESPONSE, *asked)
        hides_all = self._has_tokens or self._has_lost_track
        return _hidden_token(payload) if hides_all else payload


def _hidden_token(payload: Buffer) -> bytes:
    """No request begins like this; zeros read as a Produce."""
    return b"\xff" * len(payload)


def _hidden(payload: Buffer, kind: str, api_key: int, version: int) -> bytes:
    message = Message(
        0,
        0,
        _NOBODY,
        kind,
        payload=bytes(payload),
        size_bytes=len(payload),
        api_key=api_key,
        version=version,
    )
    root = tree(message)
    return without(frame_bytes(message), secret_ranges(root))[SIZE_PREFIX_BYTES:]
