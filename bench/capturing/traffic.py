"""Captures of any size: what clients and brokers say, in packets as tcpdump writes them.

The messages are real ones, each encoded once and sent again with another correlation id. They
travel in Ethernet frames of 1,514 bytes at most, with the receiver's ACK after every second one, on
several connections in turn; none is lost. The same call writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from struct import Struct, pack
from typing import NamedTuple

from reading.workloads import SMALL_BYTES, payload_lines

from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from pyspark_kafkaproto.messages.produce import ProduceRequest, ProduceResponse
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.wire.declaration import Request, Response
from pyspark_kafkaproto.wire.frame import encode_request, encode_response

# Of a TCP segment over Ethernet: 1,500 less 20 (IP) less 32 (TCP with timestamps).
SEGMENT_BYTES = 1448
CONNECTIONS = 4
_BATCH_RECORDS = 145  # of 100 B: the 16 kB that producers send
_CLIENT_HOST, _BROKER_HOST = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
_CLIENT_PORT, _BROKER_PORT = 50_000, 9092
_START_S = 1_700_000_000
_STEP_US = 2  # between two packets
_THINKING_US = 300  # between a request and its response
_WRITTEN_AT_ONCE = 4 << 20

_TOPIC, _TOPIC_ID = "orders", bytes(range(16))
_FIN, _SYN, _ACK = 0x01, 0x02, 0x10
_PCAP = Struct("<IHHiIII").pack(0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
# pcap: seconds, microseconds, captured, size
_PACKET = Struct("<IIII")
# Ethernet and IPv4 up to the total length; from the identification to the addresses
_IP_FRONT = bytes(12) + b"\x08\x00" + b"\x45\x00"
_IP_BACK = bytes.fromhex("0000 4000 40 06 0000")
_TCP = Struct(">HHIIBBHHH")
_TIMESTAMPS = bytes.fromhex("0101 080a") + bytes(8)
_HEADERS_BYTES = 14 + 20 + 32


class Exchange(NamedTuple):
    """A request and its response, framed, with any correlation id."""

    request: bytes
    response: bytes


@dataclass(frozen=True)
class Mix:
    """What is said, again and again.

    has_records: whether most of it are record batches.
    share: of the size that is asked for: what is slow to read takes long otherwise.
    """

    name: str
    exchanges: Sequence[Exchange]
    has_records: bool = True
    share: float = 1.0


class Written(NamedTuple):
    """A capture that was made: messages in it, and its size."""

    messages: int
    size_bytes: int


def mixes() -> list[Mix]:
    """All of them, in the order of the table."""
    large, middle, small = (fetch(batches) for batches in (64, 6, 1))
    said = [heartbeat(), empty_fetch(), offset_commit()]
    return [
        Mix("Fetch of 1 MB", [large]),
        Mix("Fetch of 100 kB", [middle]),
        Mix("Fetch of 16 kB", [small]),
        Mix("Produce of 16 kB", [produce()]),
        Mix("small messages alone", said, has_records=False, share=0.1),
        Mix("all of them", [large, *[middle, small, small, produce(), *said] * 8]),
    ]


# Messages


def exchange(
    request: Request, response: Response, version: int, client_id: str = "reader-1"
) -> Exchange:
    """Both in the same version."""
    return Exchange(
        encode_request(request, version, 0, client_id), encode_response(response, version, 0)
    )


def opening() -> list[Exchange]:
    """How a connection begins; the topic's name is told here, as later ones have its id alone."""
    offered = tuple(ApiVersionsResponse.ApiVersion(api_key=api.key, max_version=9) for api in APIS)
    hello = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    topic = MetadataResponse.Topic(name=_TOPIC, topic_id=_TOPIC_ID)
    asked = MetadataRequest(topics=(MetadataRequest.Topic(name=_TOPIC),))
    return [
        exchange(hello, ApiVersionsResponse(api_keys=offered), 3),
        exchange(asked, MetadataResponse(topics=(topic,)), 12),
    ]


@cache
def batch() -> bytes:
    """A record batch of about 16 kB, uncompressed."""
    lines = payload_lines(SMALL_BYTES)[:_BATCH_RECORDS]
    return encode_batch([NewRecord(line.encode()) for line in lines])


def fetch(batches: int) -> Exchange:
    """A Fetch of one partition, answered with so many batches."""
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=17, partition_max_bytes=1 << 20)
    found = FetchResponse.Topic.Partition(
        partition_index=0, high_watermark=1_000_000, records=batch() * batches
    )
    asked = FetchRequest.Topic(topic_id=_TOPIC_ID, partitions=(part,))
    said = FetchResponse.Topic(topic_id=_TOPIC_ID, partitions=(found,))
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(asked,))
    return exchange(request, FetchResponse(responses=(said,)), 17)


def empty_fetch() -> Exchange:
    """The end of a partition: nothing came within the wait."""
    request = FetchRequest(max_wait_ms=500, min_bytes=1, session_id=7, session_epoch=3)
    return exchange(request, FetchResponse(session_id=7), 17)


def produce() -> Exchange:
    """A Produce of one batch."""
    part = ProduceRequest.Topic.Partition(index=0, records=batch())
    done = ProduceResponse.Topic.Partition(index=0, base_offset=17)
    asked = ProduceRequest.Topic(name=_TOPIC, partition_data=(part,))
    said = ProduceResponse.Topic(name=_TOPIC, partition_responses=(done,))
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(asked,))
    return exchange(request, ProduceResponse(responses=(said,)), 12, "writer-1")


def heartbeat() -> Exchange:
    """A member that lives."""
    request = HeartbeatRequest(group_id="readers", generation_id=3, member_id="reader-1-a7")
    return exchange(request, HeartbeatResponse(), 4)


def offset_commit() -> Exchange:
    """A commit of one partition."""
    part = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=17)
    done = OffsetCommitResponse.Topic.Partition(partition_index=0)
    request = OffsetCommitRequest(
        group_id="readers", topics=(OffsetCommitRequest.Topic(name=_TOPIC, partitions=(part,)),)
    )
    said = OffsetCommitResponse.Topic(name=_TOPIC, partitions=(done,))
    return exchange(request, OffsetCommitResponse(topics=(said,)), 9)


# Packets


class _Clock:
    """The time of the next packet, in microseconds since the capture began."""

    def __init__(self) -> None:
        self.now_us = 0


class _Stream:
    """A connection: what is said on it becomes packets. Side 0 is the client."""

    def __init__(self, number: int, clock: _Clock) -> None:
        ends = (_CLIENT_HOST, _CLIENT_PORT + number), (_BROKER_HOST, _BROKER_PORT)
        self._hosts = [ends[0][0] + ends[1][0], ends[1][0] + ends[0][0]]
        self._ports = [(ends[0][1], ends[1][1]), (ends[1][1], ends[0][1])]
        self._seqs = [1000 * number, 5000 * number]
        self._clock = clock
        self._said = 0

    def open(self) -> Iterator[bytes]:
        """The three packets of the beginning."""
        yield self._packet(0, b"", _SYN)
        self._seqs[0] += 1
        yield self._packet(1, b"", _SYN | _ACK)
        self._seqs[1] += 1
        yield self._packet(0)

    def exchange(self, said: Exchange) -> Iterator[bytes]:
        """A request and its response, with the next correlation id."""
        number = pack(">I", self._said)
        self._said += 1
        request, response = said
        yield from self._say(0, request[:8] + number + request[12:])
        self._clock.now_us += _THINKING_US
        yield from self._say(1, response[:4] + number + response[8:])

    def close(self) -> Iterator[bytes]:
        """Both ends say goodbye."""
        yield self._packet(0, b"", _FIN | _ACK)
        yield self._packet(1, b"", _FIN | _ACK)

    def _say(self, side: int, data: bytes) -> Iterator[bytes]:
        for number, start in enumerate(range(0, len(data), SEGMENT_BYTES)):
            segment = data[start : start + SEGMENT_BYTES]
            yield self._packet(side, segment)
            self._seqs[side] += len(segment)
            if number % 2:
                yield self._packet(1 - side)

    def _packet(self, side: int, payload: bytes = b"", flags: int = _ACK) -> bytes:
        self._clock.now_us += _STEP_US
        seconds, fraction = divmod(self._clock.now_us, 1_000_000)
        size = _HEADERS_BYTES + len(payload)
        seq, ack = self._seqs[side] & 0xFFFFFFFF, self._seqs[1 - side] & 0xFFFFFFFF
        return b"".join(
            (
                _PACKET.pack(_START_S + seconds, fraction, size, size),
                _IP_FRONT,
                (size - 14).to_bytes(2),
                _IP_BACK,
                self._hosts[side],
                _TCP.pack(*self._ports[side], seq, ack, 0x80, flags, 65535, 0, 0),
                _TIMESTAMPS,
                payload,
            )
        )


def write_capture(path: Path, mix: Mix, size_bytes: int) -> Written:
    """Write a capture of about `size_bytes`, a little more: the last exchange is whole."""
    clock = _Clock()
    streams = [_Stream(number, clock) for number in range(CONNECTIONS)]
    count = written = 0
    with path.open("wb") as file:
        written += file.write(_PCAP)
        for stream in streams:
            written += file.write(b"".join(stream.open()))
            for said in opening():
                written += file.write(b"".join(stream.exchange(said)))
                count += 1
        turns = zip(cycle(streams), _said(mix), strict=False)
        while written < size_bytes:
            parts: list[bytes] = []
            left = min(_WRITTEN_AT_ONCE, size_bytes - written)
            for stream, said in turns:
                parts.append(b"".join(stream.exchange(said)))
                left -= len(parts[-1])
                count += 1
                if left <= 0:
                    break
            written += file.write(b"".join(parts))
        for stream in streams:
            written += file.write(b"".join(stream.close()))
    return Written(2 * count, written)


def _said(mix: Mix) -> Iterator[Exchange]:
    """Each connection in turn says the next of the mix's exchanges."""
    for said in cycle(mix.exchanges):
        for _ in range(CONNECTIONS):
            yield said
