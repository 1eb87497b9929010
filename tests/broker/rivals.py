"""Members of other clients: Kafka's own VerifiableConsumer, and librdkafka's consumer.

Both read from the beginning. In the classic protocol they share partitions out by the assignor that
is given, and beat often; in that of KIP-848 (`protocol="consumer"`) the brokers say how.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.devbroker.jars import class_path, version_key
from pyspark_kafkaproto.devbroker.java import SHORT_RUN, heap_options, logging_options, start_java

_BEAT_MS = 200
_END_S = 20
_JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class JavaMember:
    """A running VerifiableConsumer, by what it prints: a JSON object per event."""

    def __init__(self, log: Path) -> None:
        self._log = log

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions that it reads."""
        found: set[TopicPartition] = set()
        for event in self._events():
            if event["name"] in {"partitions_assigned", "partitions_revoked"}:
                partitions = {TopicPartition(*item.values()) for item in event["partitions"]}
                is_more = event["name"] == "partitions_assigned"
                found = found | partitions if is_more else found - partitions
        return found

    @property
    def count(self) -> int:
        """How many records it has read."""
        events = (event for event in self._events() if event["name"] == "records_consumed")
        return sum(event["count"] for event in events)

    def _events(self) -> Iterator[dict]:
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)


@contextmanager
def running_tool(
    broker: KafkaTools, tool: str, arguments: Sequence[str], folder: Path, level: str
) -> Iterator[Path]:
    """One of Kafka's tools that reads until it is ended; the file of what it prints.

    tool: its class, below org.apache.kafka.tools. level: what it logs from.
    """
    log = folder / "java.log"
    log.touch()
    process = start_java(
        [
            *(*heap_options(), *SHORT_RUN, *logging_options(level)),
            *("-cp", class_path(broker.version, with_tools=True)),
            f"org.apache.kafka.tools.{tool}",
            *("--bootstrap-server", broker.bootstrap_servers, *arguments),
        ],
        log,
        note=lambda _: None,
    )
    try:
        yield log
        process.terminate()
        process.wait(_END_S)
    finally:
        process.kill()
        process.wait()


@contextmanager
def java_member(
    broker: KafkaTools,
    group: str,
    topic: str,
    folder: Path,
    protocol: str = "classic",
    assignor: str = "range",
    instance_id: str | None = None,
) -> Iterator[JavaMember]:
    """A member of Kafka's Java client, which leaves at the end."""
    config = folder / "consumer.properties"
    is_classic = protocol == "classic"
    config.write_text(f"heartbeat.interval.ms={_BEAT_MS}\n" if is_classic else "")
    is_new = version_key(broker.version) >= (4, 2)  # KIP-1147
    arguments = [
        *("--topic", topic, "--group-id", group, "--reset-policy", "earliest"),
        *("--group-protocol", protocol, "--assignment-strategy", _JAVA_ASSIGNORS[assignor]),
        *(() if instance_id is None else ("--group-instance-id", instance_id)),
        *("--command-config" if is_new else "--consumer.config", str(config)),
    ]
    with running_tool(broker, "VerifiableConsumer", arguments, folder, "warn") as log:
        yield JavaMember(log)


class LibrdkafkaMember:
    """confluent-kafka's consumer, polled by the test."""

    def __init__(self, consumer: confluent_kafka.Consumer) -> None:
        self._consumer = consumer
        self.count = 0

    @property
    def assignment(self) -> set[TopicPartition]:
        """What it reads."""
        return {TopicPartition(item.topic, item.partition) for item in self._consumer.assignment()}

    def poll(self) -> None:
        """Take what has come."""
        for message in self._consumer.consume(1000, 0.02):
            assert message.error() is None, message.error()
            self.count += 1


@contextmanager
def librdkafka_member(
    broker: KafkaTools, group: str, topic: str, protocol: str = "classic", assignor: str = "range"
) -> Iterator[LibrdkafkaMember]:
    """A member of librdkafka's client, which leaves at the end."""
    classic = {
        "heartbeat.interval.ms": _BEAT_MS,
        "partition.assignment.strategy": assignor,
    }
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "group.protocol": protocol,
            **(classic if protocol == "classic" else {}),
        }
    )
    consumer.subscribe([topic])
    try:
        yield LibrdkafkaMember(consumer)
    finally:
        consumer.close()
