"""The two sides of a connection: what their frames look like, and what is made of them.

A request shows what it is by its header; a response only by its correlation id, so its side is
read with the requests at hand. A SaslHandshake of version 0 is followed by bare tokens, frames
without any header, until the next request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from pyspark_kafkaproto.capture.frames import HEAD_BYTES, Frame, Frames
from pyspark_kafkaproto.capture.message import (
    REQUEST,
    RESPONSE,
    SASL_HANDSHAKE,
    TOKEN,
    Asked,
    Message,
    Peers,
    api_name,
    is_request,
)
from pyspark_kafkaproto.capture.tcp import Assembler, Budget
from pyspark_kafkaproto.messages import request_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.wire.frame import REQUEST_START, has_header_tags, quick_body_position
from pyspark_kafkaproto.wire.quick import (
    UNEXPECTED,
    QuickReader,
    Unusual,
    quick_reader,
)

UNDECIDED, KAFKA, TLS, OTHER = "undecided", "Kafka", "TLS", "other"

_PRODUCE, _METADATA, _CREATE_TOPICS, _DESCRIBE_TOPICS = 0, 3, 19, 75
_TOPIC_NAMES_MAX = 100_000
# Requests that wait for their response, 300 bytes each: of one connection, of all, and of one when
# those are too many, so that connections that are answered go on.
_PENDING_MAX = 10_000
_ALL_PENDING_MAX = 100_000
_FEW_PENDING = 8
# Characters that are kept of a name; Kafka's topics have 249 at most.
_NAME_MAX = 256
# Bytes of one side in which no request is found, until it carries something else. Caught in the
# middle, the first may be an answer: brokers fill one up to 55 MB (fetch.max.bytes).
_UNDECIDED_BYTES_MAX = 512 << 10
_CAUGHT_BYTES_MAX = 64 << 20
# Correlation ids that are looked for at once when the step is lost; of more, what they begin with.
_SOUGHT_MAX = 64

_CORRELATION_ID_BYTES = 4  # the least that is no bare token
_TLS_RECORD = re.compile(rb"[\x14-\x17]\x03[\x00-\x04][\x00-\x48]")
_KEYS = b"[" + b"".join(re.escape(bytes([api.key])) for api in APIS) + b"]"
# size · API key · version · correlation id · size of the client id, or null. A size under 10 is
# none: many zeros in a row, as values may have, would begin a frame at each of them. Nor is one of
# API 0, version 0 and id 0: behind the few of a topic's id, it would be large, and be waited for.
_REQUEST_PATTERN = re.compile(
    rb"(?!\x00{3}[\x00-\x09]|.{4}\x00{8})[\x00-\x06].{3}"
    rb"\x00" + _KEYS + rb"\x00[\x00-\x28].{4}(?:\xff\xff|[\x00-\x01].)",
    re.DOTALL,
)


class Shared:
    """What all connections of a capture have in common.

    Attributes:
        out: messages and notes that are ready.
        topic_names: topic ids to names.
        others: how many connections carried neither Kafka nor TLS.
        undecided: how many said something, and too little to tell what.
        pending: how many requests wait for a response, of all connections.
    """

    def __init__(self, budget: Budget, make_note: Callable[[int, Peers | None, str], Any]) -> None:
        self.budget = budget
        self.out: list[Any] = []
        self.topic_names: dict[bytes, str] = {}
        self.others = 0
        self.undecided = 0
        self.pending = 0
        self._make_note = make_note
        self._count = 0

    def next_number(self) -> int:
        """Of the next message."""
        self._count += 1
        return self._count

    def learn_names(self, pairs: Iterable[tuple[bytes, str] | None]) -> None:
        """Topic ids and their names; None is somebody else's comment."""
        for topic_id, name in filter(None, pairs):
            if len(self.topic_names) < _TOPIC_NAMES_MAX:
                self.topic_names[topic_id] = name

    def note(self, time_ns: int, peers: Peers | None, text: str) -> None:
        """Say something about a connection."""
        self.out.append(self._make_note(time_ns, peers, text))


class Connection:
    """One TCP connection.

    Attributes:
        flow: addresses and ports as in the first packet, whose sender is side 0.
        assemblers: of side 0 and side 1.
        kind: UNDECIDED, KAFKA, TLS or OTHER.
        pending: the requests without a response, by correlation id.
        pending_changes: how often one of them has come or gone, for what is made of them.
        has_tokens: whether bare SASL tokens are to be expected.
        is_named: whether its port was said to be a broker's, so that a bad start proves nothing.
        last_ns: when it was last heard of.
    """

    def __init__(
        self,
        shared: Shared,
        peers: Peers,
        flow: bytes,
        client: int | None,
        *,
        has_start: bool,
        is_named: bool = False,
    ) -> None:
        self.shared = shared
        self.peers = peers
        self.flow = flow
        self.has_start = has_start
        self.is_named = is_named
        self.kind = UNDECIDED
        self.pending: dict[int, Asked] = {}
        self.pending_changes = 0
        self.has_tokens = False
        self.last_ns = 0
        self._is_over = False
        self.sides = [_Side(self, 0), _Side(self, 1)]
        self.assemblers = [Assembler(side, shared.budget) for side in self.sides]
        if client is not None:
            self._assign(client)

    @property
    def is_closing(self) -> bool:
        """Whether both sides have ended their streams."""
        return all(assembler.has_end for assembler in self.assemblers)

    @property
    def is_closed(self) -> bool:
        """Whether nothing of either stream is missing before its end, too."""
        return all(assembler.is_finished for assembler in self.assemblers)

    def may_open(self, side: int, seq: int) -> bool:
        """Whether a SYN belongs to this connection and not to a later one on the same ports."""
        return not self._is_over and self.assemblers[side].has_begun_at(seq)

    def ask(self, correlation_id: int, asked: Asked) -> None:
        """A request that a response is to come for; the oldest goes when there are too many."""
        self.answered(correlation_id)  # which nobody will
        self.pending_changes += 1
        self.shared.pending += 1
        self.pending[correlation_id] = asked
        is_crowded = self.shared.pending > _ALL_PENDING_MAX
        if len(self.pending) > (_FEW_PENDING if is_crowded else _PENDING_MAX):
            self.answered(next(iter(self.pending)))

    def answered(self, correlation_id: int) -> Asked | None:
        """The request that a response answers, which waits no longer."""
        asked = self.pending.pop(correlation_id, None)
        if asked is not None:
            self.shared.pending -= 1
            self.pending_changes += 1
        return asked

    def settle(self, kind: str, client: int = 0) -> None:
        """It has become clear what the connection carries; a client is known of Kafka's alone."""
        if self.kind != UNDECIDED:
            return
        self.kind = kind
        if kind == KAFKA:
            if self.sides[client].role is None:
                self.peers = self.peers if client == 0 else _swapped(self.peers)
                self._assign(client)
                self.sides[1 - client].frames.begin_again(is_in_step=False)
            for assembler, side in zip(self.assemblers, self.sides, strict=True):
                assembler.sink = side.frames
            return
        for assembler in self.assemblers:
            assembler.sink = _Nowhere()
        if kind == TLS:
            text = "TLS: it is encrypted, so nothing more can be shown"
            self.shared.note(self.last_ns, self.peers, text)
        else:
            self.shared.others += 1

    def finish(self) -> None:
        """The connection is over, or the capture is."""
        if self._is_over:
            return
        for assembler in self.assemblers:
            assembler.flush()
        self._is_over = True
        if self.kind == UNDECIDED:
            for side in self.sides:
                if side.role == REQUEST:
                    side.frames.end()  # the start of a request says enough
        if self.kind == KAFKA:
            self._end_kafka()
        else:
            self.shared.undecided += self.kind == UNDECIDED and self._has_spoken
            for side in self.sides:
                side.frames.begin_again(is_in_step=False)

    @property
    def _has_spoken(self) -> bool:
        shown = any(side.seen_bytes for side in self.sides)
        return shown or any(assembler.missing_bytes for assembler in self.assemblers)

    def release(self) -> None:
        """Nobody will ask for it again: give back what came after its end and still waits."""
        for assembler, side in zip(self.assemblers, self.sides, strict=True):
            assembler.sink = _Nowhere()
            assembler.flush()
            side.frames.begin_again(is_in_step=False)

    def _end_kafka(self) -> None:
        for side in self.sides:
            side.frames.end()
        lost = sum(assembler.missing_bytes for assembler in self.assemblers)
        skipped = sum(side.frames.skipped_bytes for side in self.sides)
        if lost or skipped:
            self.shared.note(self.last_ns, self.peers, _unread(lost, skipped))
        if self.pending:
            self.shared.note(self.last_ns, self.peers, _unanswered(self.pending))
            self.shared.pending -= len(self.pending)
            self.pending.clear()

    def _assign(self, client: int) -> None:
        self.sides[client].role = REQUEST
        self.sides[1 - client].role = RESPONSE


def _swapped(peers: Peers) -> Peers:
    return Peers(peers.number, peers.broker, peers.client)


def _unread(lost: int, skipped: int) -> str:
    if not skipped:
        return f"{lost} bytes were not captured"
    unread = f"{skipped} {'more ' if lost else 'bytes '}could not be read as frames"
    return f"{lost} bytes were not captured, {unread}" if lost else unread


def _unanswered(pending: dict[int, Asked]) -> str:
    asked = list(pending.items())
    names = [f"{api_name(each.api_key)} v{each.version} #{key}" for key, each in asked[:3]]
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    return f"no response in the capture to {', '.join(names)}{more}"


class _Nowhere:
    """For bytes that nobody reads."""

    def feed(self, chunk: bytes, time_ns: int) -> None:
        pass

    def gap(self, size_bytes: int, time_ns: int) -> None:
        pass


class _Side:
    """One side: the sink of its bytes while it is undecided, and the owner of its frames.

    Attributes:
        role: REQUEST for the client, RESPONSE for the broker, None while nobody knows.
        seen_bytes: captured while it was undecided.
    """

    def __init__(self, connection: Connection, index: int) -> None:
        self.role: str | None = None
        self.frames = Frames(self, connection.shared.budget, is_in_step=connection.has_start)
        self._connection = connection
        self._index = index
        self.seen_bytes = 0
        self._tls_records = 0
        self._pattern: tuple[int, re.Pattern[bytes] | None] = (-1, None)

    # While it is undecided

    def feed(self, chunk: bytes, time_ns: int) -> None:
        """Bytes of a connection of which nobody knows what it carries."""
        connection = self._connection
        if _TLS_RECORD.match(chunk):
            self._tls_records += 1
            if self._tls_records > (not connection.has_start):
                connection.settle(TLS)
                return
        self.seen_bytes += len(chunk)
        if self.role == RESPONSE:
            self._flush_requests()
        self.frames.feed(chunk, time_ns)
        most_bytes = _UNDECIDED_BYTES_MAX if connection.has_start else _CAUGHT_BYTES_MAX
        may_be_kafka = connection.is_named or self.frames.is_inside
        if self.seen_bytes > most_bytes and not may_be_kafka:
            connection.settle(OTHER)

    def gap(self, size_bytes: int, time_ns: int) -> None:
        """Bytes of it are missing."""
        self.frames.gap(size_bytes, time_ns)

    def _flush_requests(self) -> None:
        """What a broker answers it has read: where that waits behind a hole, the hole will stay."""
        self._connection.assemblers[1 - self._index].flush()

    # What frames look like

    def is_plausible(self, head: bytes, size_bytes: int) -> bool:
        """Whether a frame can begin like this."""
        connection = self._connection
        if size_bytes < _CORRELATION_ID_BYTES:
            return connection.has_tokens
        if self.role != RESPONSE:
            in_step = connection.kind == KAFKA and self.frames.is_in_step
            return is_request(head, size_bytes, any_api=in_step) or connection.has_tokens
        if connection.kind == KAFKA and self.frames.is_in_step:
            return True
        return int.from_bytes(head[:4], signed=True) in connection.pending

    def is_sound(self, payload: bytes | bytearray) -> bool:
        """Whether a frame that was found by its looks can be read."""
        connection = self._connection
        facts: dict[str, Any] = {"payload": payload, "size_bytes": len(payload)}
        if self.role == RESPONSE:
            asked = connection.pending.get(int.from_bytes(payload[:4], signed=True))
            if asked is None:
                return False
            facts |= {"api_key": asked.api_key, "version": asked.version}
        else:
            facts |= _request_facts(payload)
        kind = self.role or REQUEST
        return Message(0, 0, connection.peers, kind, **facts).body() is not None

    def pattern(self) -> re.Pattern[bytes] | None:
        """Where frames can begin."""
        if self.role != RESPONSE:
            return _REQUEST_PATTERN
        self._flush_requests()
        connection = self._connection
        changes = connection.pending_changes
        if self._pattern[0] != changes:
            self._pattern = changes, _answer_pattern(connection.pending)
        return self._pattern[1]

    def refuse(self, start: bytes) -> bool:
        """No frame is here; a client that begins like this does not speak Kafka.

        A gap proves nothing, nor does a response: its request may be lost, or come late.
        """
        connection = self._connection
        is_beginning = self.frames.is_in_step and connection.has_start and self.role != RESPONSE
        if connection.kind == UNDECIDED and is_beginning and start and not connection.is_named:
            connection.settle(OTHER)
        return connection.kind in {UNDECIDED, KAFKA}

    # What is made of frames

    def take(self, frame: Frame) -> None:
        """A frame."""
        connection = self._connection
        if connection.kind == UNDECIDED and self.role != RESPONSE:
            connection.settle(KAFKA, self._index)
        if self.role == RESPONSE:
            self._take_response(frame)
        elif connection.has_tokens and not is_request(
            bytes(frame.payload[:HEAD_BYTES]), frame.size_bytes, any_api=False
        ):
            self._take_token(frame)
        else:
            self._take_request(frame)

    def _take_token(self, frame: Frame) -> None:
        self._add(frame, TOKEN)

    def _take_request(self, frame: Frame) -> None:
        connection = self._connection
        facts = _request_facts(frame.payload)
        message = self._add(frame, REQUEST, **facts)
        if not facts:
            return
        connection.has_tokens = message.api_key == SASL_HANDSHAKE and message.version == 0
        if message.api_key == _PRODUCE and _wants_no_answer(message):
            return
        if message.is_hidden:
            message.body()  # which tells whether its client id can be shown
        asked = Asked(
            message.number, facts["api_key"], message.version, frame.time_ns, message.client_id
        )
        connection.ask(facts["correlation_id"], asked)

    def _take_response(self, frame: Frame) -> None:
        connection = self._connection
        correlation_id = int.from_bytes(frame.payload[:4], signed=True)
        if frame.size_bytes < _CORRELATION_ID_BYTES:
            self._take_token(frame)
            return
        asked = connection.answered(correlation_id)
        if asked is None:
            self._flush_requests()
            asked = connection.answered(correlation_id)
        if asked is None:
            if connection.has_tokens:
                self._take_token(frame)
            else:
                self._add(frame, RESPONSE, correlation_id=correlation_id)
            return
        message = self._add(
            frame,
            RESPONSE,
            api_key=asked.api_key,
            version=asked.version,
            correlation_id=correlation_id,
            client_id=asked.client_id,
            latency_ns=frame.time_ns - asked.time_ns,
            answers=asked.number,
        )
        if asked.api_key in {_METADATA, _CREATE_TOPICS, _DESCRIBE_TOPICS}:
            connection.shared.learn_names(_names(message))

    def _add(self, frame: Frame, kind: str, **facts: Any) -> Message:
        connection = self._connection
        shared = connection.shared
        message = Message(
            shared.next_number(),
            frame.time_ns,
            connection.peers,
            kind,
            payload=frame.payload,
            size_bytes=frame.size_bytes,
            skipped_bytes=frame.skipped_bytes,
            topic_names=shared.topic_names,
            **facts,
        )
        shared.out.append(message)
        return message


def _answer_pattern(ids: Collection[int]) -> re.Pattern[bytes] | None:
    """Where the answer to any of these can begin.

    The oldest alone would not do: where a gap held that many answers, they are never answered.
    """
    if len(ids) <= _SOUGHT_MAX:
        sought = [re.escape(each.to_bytes(4, signed=True)) for each in ids]
    else:  # clients count, so that 256 in a row differ in their last byte
        starts = list(dict.fromkeys(each >> 8 for each in ids))[-_SOUGHT_MAX:]
        sought = [re.escape(start.to_bytes(3, signed=True)) + b"." for start in starts]
    found = b"(?!\\x00{3}[\\x00-\\x03])[\\x00-\\x06].{3}(?:" + b"|".join(sought) + b")"
    return re.compile(found, re.DOTALL) if sought else None


def _request_facts(payload: bytes | bytearray) -> dict[str, Any]:
    """What the header of a request says; nothing where it is cut."""
    if len(payload) < REQUEST_START.size:
        return {}
    api_key, version, correlation_id = REQUEST_START.unpack_from(payload)
    size = int.from_bytes(payload[8:10], signed=True) if len(payload) >= 10 else -1
    client_id = None
    if size >= 0:
        start = payload[10 : 10 + min(size, 4 * _NAME_MAX)]
        client_id = str(start, "utf-8", "replace")[:_NAME_MAX]
    return {
        "api_key": api_key,
        "version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }


def _wants_no_answer(produce: Message) -> bool:
    """Whether its acks are 0; its records, which stand behind them, are not read for that."""
    data = memoryview(produce.payload)
    try:
        read, has_tags = _acks_reader(produce.version)
        pos = quick_body_position(data, is_request=True, has_tags=has_tags)
        (acks,), _ = read(data, pos, len(data))
    except UNEXPECTED:
        body = produce.body()
        return body is not None and body.acks == 0
    return bool(acks == 0)


@cache
def _acks_reader(version: int) -> tuple[QuickReader, bool]:
    """What reads a Produce up to its acks, and whether its header has tagged fields."""
    cls = request_class(_PRODUCE)
    if version not in cls.VERSIONS:
        raise Unusual
    flexible = cls.is_flexible(version)
    wanted = ("acks",)
    made = quick_reader(cls, version, flexible=flexible, wanted=lambda _: wanted, is_front=True)
    return made, has_header_tags(cls, version)


def _names(message: Message) -> Iterator[tuple[bytes, str]]:
    """Topic ids and their names, from an answer that has both."""
    for topic in getattr(message.body(), "topics", ()) or ():
        topic_id = getattr(topic, "topic_id", None)
        if topic_id and topic.name and any(topic_id):
            yield topic_id, topic.name[:_NAME_MAX]
