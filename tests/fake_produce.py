"""Writing to the fake cluster: sequences are checked as a real leader does (KIP-98)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.client.writing.plain import decoded_batch, records_of
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.records import Columns, decode
from pyspark_kafkaproto.records.layout import HEADER
from tests.fake_log import Batch, FakeLog

if TYPE_CHECKING:
    from tests.fake_broker import Call, FakeCluster

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER = 6
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
UNKNOWN_TOPIC_ID = 100

Written = ProduceResponse.Topic.Partition


@dataclass(slots=True)
class Known:
    """What a leader knows of one producer: its last five batches."""

    epoch: int
    next_sequence: int = 0
    last: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=5))


def produce(cluster: FakeCluster, call: Call) -> Any:
    """The default answer to Produce; none with acks=0."""
    from tests.fake_broker import STALL

    topics = []
    for topic in call.request.topic_data:
        by_id = {known.topic_id: name for name, known in cluster.topics.items()}
        name = topic.name or by_id.get(topic.topic_id)
        answered = tuple(write(cluster, call, name, item) for item in topic.partition_data)
        topics.append(
            ProduceResponse.Topic(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answered
            )
        )
    if call.request.acks == 0:
        return STALL
    return ProduceResponse(responses=tuple(topics))


def refusing(code: int, partition: int | None = None, **fields: Any) -> Any:
    """An answer that refuses every partition, or one of them, and writes the others."""

    def answer(call: Call) -> Any:
        return _with_errors(call, code, partition, fields)

    return answer


def _with_errors(call: Call, code: int, partition: int | None, fields: dict[str, Any]) -> Any:
    topics = tuple(
        ProduceResponse.Topic(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=tuple(
                Written(index=item.index, error_code=code, base_offset=-1, **fields)
                for item in topic.partition_data
                if partition in (None, item.index)
            ),
        )
        for topic in call.request.topic_data
    )
    return ProduceResponse(responses=topics)


def write(cluster: FakeCluster, call: Call, name: str | None, item: Any) -> Written:
    """Append one batch, or say why not."""
    if name is None or name not in cluster.topics:
        code = UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC_OR_PARTITION
        return Written(index=item.index, error_code=code, base_offset=-1)
    if cluster.topics[name].leaders[item.index] != call.node_id:
        return Written(index=item.index, error_code=NOT_LEADER, base_offset=-1)
    code, offset = append(cluster.logs[name, item.index], bytes(item.records))
    return Written(index=item.index, error_code=code, base_offset=offset)


def append(log: FakeLog, data: bytes) -> tuple[int, int]:
    """The error code and the base offset."""
    header = HEADER.unpack_from(data)
    producer_id, epoch, sequence, records = header[9:13]
    if producer_id >= 0:
        known = log.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            return INVALID_PRODUCER_EPOCH, -1
        if known is not None and epoch == known.epoch:
            for first, count, offset in known.last:
                if (first, count) == (sequence, records):
                    return 0, offset  # written already
        is_new = known is None or epoch > known.epoch
        # As a real broker: of a producer that it has never met it takes any sequence.
        if known is not None and sequence != (0 if is_new else known.next_sequence):
            return OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        known = Known(epoch) if known is None or is_new else known
        log.producers[producer_id] = known
        known.next_sequence = (sequence + records) & 0x7FFFFFFF
        known.last.append((sequence, records, log.stop))
    offset = log.stop
    log.stop += records
    log.batches.append(Batch(offset.to_bytes(8) + data[8:], log.stop))
    return 0, offset


def come_up_again(log: FakeLog) -> None:
    """The broker restarts: its snapshot of producers has the last batch of each alone."""
    for known in log.producers.values():
        while len(known.last) > 1:
            known.last.popleft()


def values_in(data: bytes) -> list[bytes]:
    """What a batch holds, as a producer sends it."""
    records = HEADER.unpack_from(data)[12]
    decoded = decode(data, start=0, stop=records, wanted=Columns.VALUE)
    offsets = memoryview(decoded.value.offsets).cast("B").cast("i")
    content = bytes(decoded.value.data)
    return [content[offsets[n] : offsets[n + 1]] for n in range(records)]


def times_of(log: FakeLog) -> list[int | None]:
    """The timestamp of each record of a log, in milliseconds."""
    taken = [decoded_batch(batch.data, log.stop) for batch in log.batches]
    return [record.timestamp_ms for part in taken for record in records_of(part, range(part.rows))]


def values(log: FakeLog) -> list[bytes | None]:
    """What the log holds, in its order."""
    block = b"".join(batch.data for batch in log.batches)
    found: list[bytes | None] = []
    pos = 0
    while pos < len(block):
        decoded = decode(block, pos=pos, start=0, stop=log.stop, wanted=Columns.VALUE)
        offsets = memoryview(decoded.value.offsets).cast("B").cast("i")
        data = memoryview(decoded.value.data).cast("B")
        found += [bytes(data[offsets[n] : offsets[n + 1]]) for n in range(decoded.rows)]
        pos = decoded.pos
    return found


def stamped(log: FakeLog) -> list[tuple[int, int, int]]:
    """Producer id, epoch and first sequence of each batch in the log."""
    return [HEADER.unpack_from(batch.data)[9:12] for batch in log.batches]


def init_producer_id(cluster: FakeCluster, call: Call) -> InitProducerIdResponse:
    """The default answer to InitProducerId: a new one each time."""
    del call
    cluster.producer_ids += 1
    return InitProducerIdResponse(producer_id=cluster.producer_ids, producer_epoch=0)
