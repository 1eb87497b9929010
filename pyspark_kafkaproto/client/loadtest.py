"""The load example: a producer and a consumer on one topic, and whether they agree.

Each message proves itself: it carries its number, the moment it was made and a checksum over all
of it. So what is read is known to be whole, once, in order, and how long it took. What others
write to the topic is counted and left alone. An object per message: this measures a cluster from
Python, not how fast the package's readers are (bench/ does that).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.capture.statistics import Latencies
from pyspark_kafkaproto.client.produce import Producer
from pyspark_kafkaproto.client.reading.decode import read_batches
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.silence import waiting_aloud
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ProducerConfig

if TYPE_CHECKING:
    import pyarrow as pa

# mark, CRC-32 of all that follows, run, number, moment; then noise
_HEAD = Struct(">4sI8sQQ")
_MARK = b"\xfeKLT"
_CHECKED_FROM = 8
LEAST_BYTES = _HEAD.size

# Enough for an Arrow batch to be worth its making, little enough for a rate to be even.
_ROWS_MAX = 500
_ROWS_BYTES = 256 << 10
_IDLE_S = 0.002
# A consumer to which nothing more comes waits so long for what was sent, and so long in all.
_QUIET_S = 3.0
_DRAIN_S = 30.0
_LEAVES_S = 2.0  # a producer whose reader has failed; it may be waiting for a broker
_PERCENTS = (50, 95, 99, 100)


class Load(NamedTuple):
    """What a load test has seen so far.

    seconds: since it began. sent: messages given to the producer. acknowledged: by the brokers,
    known at the end. valid: read, whole and for the first time; valid_bytes: their sizes.
    invalid: read with our mark and a wrong checksum. duplicates: read again. misordered: read
    behind a later one of the same partition. lost: acknowledged and not read, known at the end.
    foreign: other people's. latency_ms: from making a message to having decoded it, percentile to
    milliseconds, to within 5 %.
    """

    seconds: float
    sent: int
    acknowledged: int
    valid: int
    valid_bytes: int
    invalid: int
    duplicates: int
    misordered: int
    lost: int
    foreign: int
    latency_ms: Mapping[str, float]

    @property
    def is_sound(self) -> bool:
        """Whether messages came, and each that was acknowledged came whole, once, in its order."""
        bad = self.invalid + self.duplicates + self.misordered + self.lost
        return bad == 0 and self.valid > 0


class Messages:
    """Makes the messages of one run, and checks those that are read.

    Args:
        size_bytes: of each message.
        run: tells this run's messages from another's; 8 bytes.
    """

    def __init__(self, size_bytes: int, run: bytes) -> None:
        self._noise = os.urandom(size_bytes - LEAST_BYTES)
        self._run = run
        self._seen = bytearray()
        self._last: dict[int, int] = {}
        self.made = 0
        self.valid = self.valid_bytes = self.invalid = 0
        self.duplicates = self.misordered = self.foreign = 0
        self.latencies = Latencies()

    def make(self, count: int) -> list[bytes]:
        """The next `count` messages."""
        now = time.monotonic_ns()
        first, self.made = self.made, self.made + count
        made = []
        for number in range(first, first + count):
            checked = _HEAD.pack(b"", 0, self._run, number, now)[_CHECKED_FROM:] + self._noise
            made.append(_MARK + crc32(checked).to_bytes(4) + checked)
        return made

    def check(self, batch: pa.RecordBatch) -> None:
        """Count the messages of a batch, with columns value and partition."""
        now = time.monotonic_ns()
        values = batch.column("value").to_pylist()
        for value, partition in zip(values, batch.column("partition").to_pylist(), strict=True):
            if value is None or value[:4] != _MARK or len(value) < LEAST_BYTES:
                self.foreign += 1
                continue
            _, crc, run, number, made_ns = _HEAD.unpack_from(value)
            if crc != crc32(memoryview(value)[_CHECKED_FROM:]):
                self.invalid += 1
            elif run != self._run:
                self.foreign += 1
            else:
                self._count(partition, number, len(value), now - made_ns)

    def _count(self, partition: int, number: int, size_bytes: int, latency_ns: int) -> None:
        if number >= len(self._seen):
            self._seen.extend(bytes(max(number + 1, self.made) - len(self._seen)))
        if self._seen[number]:
            self.duplicates += 1
            return
        self._seen[number] = 1
        self.valid += 1
        self.valid_bytes += size_bytes
        self.latencies.add(latency_ns)
        if number < self._last.get(partition, -1):
            self.misordered += 1
        self._last[partition] = number


class LoadTest:
    """Writes and reads a topic at the same time, in two threads, for a number of seconds.

        test = LoadTest({"bootstrap.servers": "broker-1:9092"}, "load", seconds=5)
        while not test.wait(1):
            print(test.load())
        print(test.finish())

    Args:
        properties: Kafka's, of producer and consumer; `linger.ms` is 5 unless they say otherwise.
        topic: which exists.
        size_bytes: of each message.
        seconds: how long to write. It ends at most `delivery.timeout.ms` and half a minute later.
        rate: messages a second; None for as many as go.
        tell: is told whom it waits for, if nobody answers for a while, before it begins.

    Raises:
        ConfigError: an argument or a property cannot be used.
        BrokerError: there is no such topic.
    """

    def __init__(
        self,
        properties: Mapping[str, object],
        topic: str,
        *,
        size_bytes: int = 1000,
        seconds: float = 10.0,
        rate: int | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._config = ProducerConfig.parse({"linger.ms": "5", **properties})
        self._config.check_without_transactions()
        _check(size_bytes, seconds, rate, self._config.max_request_size)
        self._topic = topic
        self._seconds, self._rate = seconds, rate
        self._rows = max(1, min(_ROWS_MAX, _ROWS_BYTES // size_bytes))
        self._messages = Messages(size_bytes, os.urandom(8))
        self._acknowledged = 0
        self._failure: BaseException | None = None
        self._stopped = threading.Event()  # write no more
        self._written = threading.Event()  # the producer has ended
        self._ended = threading.Event()
        self._cluster = KafkaCluster(self._config.client)
        try:
            with waiting_aloud(lambda: self._cluster.waits_for, tell):
                self._positions = self._find_ends()
        except BaseException:
            self._cluster.close()
            raise
        self._began = time.monotonic()
        self._took_s: float | None = None
        for work in (self._produce, self._consume):
            name = f"kafkaproto-load{work.__name__}"
            threading.Thread(target=self._run, name=name, args=(work,), daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended, or for so long; whether it has ended."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """Write no more; what was written is still read."""
        self._stopped.set()

    def finish(self) -> Load:
        """Wait for the end; what there was to see.

        Raises:
            KafkaProtoError: what ended it early.
        """
        self._ended.wait()
        if self._failure is not None:
            self._written.wait(_LEAVES_S)
            raise self._failure
        return self.load()

    def load(self) -> Load:
        """What has been seen so far."""
        seen = self._messages
        is_over = self._ended.is_set()
        return Load(
            self._took_s or time.monotonic() - self._began,
            seen.made,
            self._acknowledged,
            seen.valid,
            seen.valid_bytes,
            seen.invalid,
            seen.duplicates,
            seen.misordered,
            max(0, self._acknowledged - seen.valid - seen.invalid) if is_over else 0,
            seen.foreign,
            {f"p{percent}": seen.latencies.percentile_ms(percent) for percent in _PERCENTS}
            if is_over and seen.valid
            else {},
        )

    def _run(self, work: Callable[[], None]) -> None:
        """The life of a thread: whatever ends one ends the other, and is told by `finish`."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits
            self._failure = self._failure or error
            self._stopped.set()
        finally:
            (self._written if work == self._produce else self._ended).set()

    # The producer's thread

    def _produce(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - imported with the first message, as elsewhere

        with Producer(self._config, topic=self._topic) as producer:
            producer.check_topics({self._topic})
            began = time.monotonic()  # whatever it took to come so far, something is written
            while not self._stopped.is_set():
                spent_s = time.monotonic() - began
                if spent_s >= self._seconds:
                    break
                count = self._due(spent_s)
                values = pa.array(self._messages.make(count), pa.binary())
                producer.send(pa.RecordBatch.from_arrays([values], ["value"]))
                if not count:
                    self._stopped.wait(_IDLE_S)
            if self._failure is not None:  # the consumer's: nobody looks at what is left
                producer.abandon()
                return
            written = producer.flush()
        self._acknowledged = sum(item.records for item in written.values())

    def _due(self, spent_s: float) -> int:
        """How many messages to send now; none still lets the producer send what has waited."""
        if self._rate is None:
            return self._rows
        due = int(spent_s * self._rate) + 1 - self._messages.made
        return max(0, min(self._rows, due))

    # The consumer's thread

    def _find_ends(self) -> dict[TopicPartition, int]:
        partitions = self._cluster.get_partitions({self._topic})
        return self._cluster.get_latest_leader_offsets(partitions)

    def _consume(self) -> None:
        drain_until = quiet_until = float("inf")
        with self._cluster:
            while not (self._written.is_set() and self._has_all()):
                now = time.monotonic()
                if self._written.is_set() and drain_until == float("inf"):
                    drain_until, quiet_until = now + _DRAIN_S, now + _QUIET_S
                if now >= min(drain_until, quiet_until):
                    break
                if self._read_news():
                    quiet_until = now + _QUIET_S if self._written.is_set() else quiet_until
                else:
                    time.sleep(_IDLE_S)
        self._took_s = time.monotonic() - self._began

    def _has_all(self) -> bool:
        seen = self._messages
        is_failed = self._failure is not None
        return is_failed or seen.valid + seen.invalid >= self._acknowledged

    def _read_news(self) -> bool:
        """Read what has been written since; whether there was any."""
        # Partitions that were added since are written to as well, once the producer knows them.
        topology = self._cluster.describe({self._topic}, must_exist=True)
        added = topology.partitions_of({self._topic}) - self._positions.keys()
        self._positions |= dict.fromkeys(added, 0)
        ends = self._cluster.get_latest_leader_offsets(self._positions.keys())
        ranges = tuple(
            OffsetRange(*item, self._positions[item], end)
            for item, end in sorted(ends.items())
            if self._positions[item] < end
        )
        if not ranges:
            return False
        leaders = self._cluster.find_leaders([item.topic_partition for item in ranges])
        task = ReadTask(ranges, leaders, {self._topic: topology.topic(self._topic).topic_id})
        columns = schema_for(("value", "partition"))
        for batch in read_batches(task, self._config.client, ReadSettings(), columns):
            self._messages.check(batch)
        self._positions |= {item.topic_partition: item.stop or 0 for item in ranges}
        return True


def _check(size_bytes: int, seconds: float, rate: int | None, most_bytes: int) -> None:
    if size_bytes < LEAST_BYTES:
        expected = f"expected {LEAST_BYTES} or more: number, time and checksum take so many"
        raise ConfigError("size", size_bytes, expected)
    if size_bytes >= most_bytes:  # a batch has a header, too
        expected = f"expected less than max.request.size, which is {most_bytes}"
        raise ConfigError("size", size_bytes, expected)
    if not seconds > 0:  # nan is not
        raise ConfigError("seconds", seconds, "expected more than 0")
    if rate is not None and rate < 1:
        raise ConfigError("rate", rate, "expected 1 or more, or none")
