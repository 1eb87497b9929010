"""A message as a tree of fields with their byte ranges; positions count from the size prefix.

Batches are opened, a consumer's subscription and assignment too. Secrets are marked, and so is
the whole body where it might hold one and cannot be read field by field.
"""

from __future__ import annotations

from pyspark_kafkaproto.capture.batches import RECORDS_MAX, Room, open_records
from pyspark_kafkaproto.capture.message import (
    FETCH,
    METADATA_LOG,
    REQUEST,
    RESPONSE,
    TOKEN,
    Message,
)
from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages import find_api, key_of
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.declaration import Message as Declared
from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES, has_header_tags
from pyspark_kafkaproto.wire.schema import read_raw_tags
from pyspark_kafkaproto.wire.trace import Node, trace

_EMBEDDED: dict[str, type[Declared]] = {
    "metadata": ConsumerProtocolSubscription,
    "member_metadata": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
    "member_assignment": ConsumerProtocolAssignment,
}
_GROUP_APIS = set(map(key_of, ("JoinGroup", "SyncGroup", "DescribeGroups")))


def frame_bytes(message: Message) -> bytes:
    """The frame with its size prefix, as far as it was captured."""
    return message.size_bytes.to_bytes(SIZE_PREFIX_BYTES) + message.payload


def tree(message: Message, records_max: int = RECORDS_MAX) -> Node:
    """The fields of `message`; what cannot be read stands in a node of its own, with its bytes.

    Args:
        message: any.
        records_max: so many records are shown, of all its batches together.
    """
    frame = frame_bytes(message)
    root = Node(message.title, 0, len(frame))
    _add(root, "size", 0, 4, message.size_bytes, "int32")
    try:
        pos = _header(message, frame, root)
        cls = message.body_class()
        body = trace(cls, frame, message.read_version, pos)
    except (LocalProtocolError, RemoteProtocolError) as error:
        _unread(message, root, frame, str(error))
        if message.is_hidden:
            _hide(message, root, len(frame))
        return root
    root.children += body.children
    root.problem = body.problem
    if body.problem and message.lost_bytes:
        root.problem = f"{message.lost_bytes} bytes of its end were not captured"
    if body.problem and message.is_hidden:
        _hide(message, root, len(frame))
        return root
    if message.kind == RESPONSE and message.api_key == FETCH:
        _hide_log(root)
    _open(message, root, frame, records_max)
    return root


def _add(parent: Node, name: str, start: int, stop: int, value: object, kind: str) -> None:
    parent.add(name, start, stop, value).kind = kind


def _unread(message: Message, root: Node, frame: bytes, reason: str) -> None:
    """The rest of a frame that nobody can read, as bytes."""
    start = max(child.stop for child in root.children)
    node = root.add("unread", start, len(frame), frame[start:])
    node.kind = "bytes"
    node.is_secret = message.is_hidden
    root.problem = reason


def _hide(message: Message, root: Node, stop: int) -> None:
    """Nothing behind the correlation id is to be seen: one damaged byte moves all that follows."""
    start = {REQUEST: 12, TOKEN: SIZE_PREFIX_BYTES}.get(message.kind, 8)
    start = min(start, stop)
    root.children = [child for child in root.children if child.start >= 0 and child.stop <= start]
    node = root.add("unread", start, stop)
    node.kind, node.is_secret = "bytes", True


def _hide_log(root: Node) -> None:
    """Nothing of the records is to be seen where they are of the controllers' log."""
    for topic in root.walk():
        names = (node.value for node in topic.children if node.name in {"topic", "topic_id"})
        if any(name in METADATA_LOG for name in names):
            for node in topic.walk():
                node.is_secret |= node.kind == "records"


def _header(message: Message, frame: bytes, root: Node) -> int:
    """Add the header's fields; where the body begins."""
    if message.kind == TOKEN:
        return SIZE_PREFIX_BYTES
    if message.kind == REQUEST:
        return _request_header(message, frame, root)
    if len(frame) >= 8:
        _add(root, "correlation_id", 4, 8, message.correlation_id, "int32")
    cls = message.body_class()
    return _tags(frame, 8, root) if has_header_tags(cls, message.version) else 8


def _request_header(message: Message, frame: bytes, root: Node) -> int:
    api = find_api(message.api_key) if message.api_key is not None else None
    if message.api_key is None:
        raise RemoteProtocolError("a request header needs 10 bytes")
    _add(root, "api_key", 4, 6, message.api_key, "int16")
    _add(root, "api_version", 6, 8, message.version, "int16")
    _add(root, "correlation_id", 8, 12, message.correlation_id, "int32")
    size = int.from_bytes(frame[12:14], signed=True)
    stop = min(len(frame), 14 + max(0, size))
    _add(root, "client_id", 12, stop, message.client_id, "string")
    if api is None:
        raise LocalProtocolError(f"API key {message.api_key} is not known here")
    cls = message.body_class()
    return _tags(frame, stop, root) if has_header_tags(cls, message.version) else stop


def _tags(frame: bytes, pos: int, root: Node) -> int:
    cursor = Cursor(frame[pos:])
    tags = read_raw_tags(cursor)
    stop = pos + cursor.pos
    shown = {tag: bytes(body) for tag, body in tags}
    _add(root, "header_tags", pos, stop, str(shown) if shown else "none", "tags")
    return stop


def _open(message: Message, root: Node, frame: bytes, records_max: int) -> None:
    """Hang below their nodes what bytes fields hold."""
    room = Room(records_max)
    embeds = message.api_key in _GROUP_APIS
    for node in list(root.walk()):
        if node.is_null or node.problem or node.is_secret:
            continue
        if node.kind == "records":
            open_records(node, room)
        elif embeds and node.kind == "bytes" and node.name in _EMBEDDED and node.value:
            _embed(node, frame)


def _embed(node: Node, frame: bytes) -> None:
    """What a consumer wrote into its group's messages; other members write what they like."""
    cls = _EMBEDDED[node.name]
    start = node.stop - len(node.value)
    version = int.from_bytes(frame[start : start + 2])
    if version not in cls.VERSIONS or len(node.value) < 2:
        return
    inner = trace(cls, frame[: node.stop], version, start + 2)
    if not inner.problem:
        _add(node, "version", start, start + 2, version, "int16")
        node.children += inner.children
