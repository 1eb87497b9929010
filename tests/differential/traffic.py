"""Real traffic of real clients against a real broker, captured by tcpdump and read by tshark.

For tests/differential/test_tshark.py, and to make the captures that are committed:

    python -m tests.differential.traffic FOLDER     # KAFKA_BOOTSTRAP_SERVERS says where
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline

RECORDS = 7
_WAIT_S = 30.0

# Names of tshark's fields; what it gives for each is a list, in the order of the packet.
FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "tcp.srcport",
    "kafka.len",
    "kafka.api_key",
    "kafka.api_version",
    "kafka.correlation_id",
    "kafka.client_id",
    "kafka.topic_name",
    "kafka.partition_id",
    "kafka.offset",
    "kafka.error",
    "kafka.message_key",
    "kafka.message_value",
)


@contextmanager
def captured(path: Path, broker: Any) -> Iterator[None]:
    """Runs tcpdump on the loopback interface meanwhile."""
    options = ("-i", "lo", "-U", "--immediate-mode", "-Z", "root", "-w", str(path))
    command = ["tcpdump", *options, f"tcp port {port_of(broker)}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert "listening on" in process.stderr.readline()
        yield
        _wait_for_the_end(path, broker.bootstrap_servers)
    finally:
        process.terminate()
        process.communicate(timeout=_WAIT_S)


def _wait_for_the_end(path: Path, servers: str) -> None:
    """Say a word of our own on the wire, and wait until it stands in the file."""
    name = f"marker-{uuid4().hex}"
    config = ClientConfig.parse({"bootstrap.servers": servers, "client.id": name})
    deadline = Deadline.after(_WAIT_S)
    Connection.open(config.bootstrap_servers[0], config, deadline).close()
    while name.encode() not in path.read_bytes():
        deadline.check("waiting for tcpdump to write")
        time.sleep(0.1)


def java(broker: Any, topic: str) -> None:
    """Kafka's console tools."""
    lines = "".join(f"key-{number}\tJava {number}\n" for number in range(RECORDS))
    properties = ("--producer-property", "client.id=capture-java")
    pairs = ("--property", "parse.key=true", "--property", "key.separator=\t")
    broker.run_tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic),
        *properties,
        *pairs,
        stdin=lines,
    )
    broker.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--group", f"{topic}-java"),
        *("--consumer-property", "client.id=capture-java"),
    )


def librdkafka(broker: Any, topic: str) -> None:
    """confluent-kafka: a producer, and a consumer in a group."""
    from confluent_kafka import Consumer, Producer

    common = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "capture-rdkafka"}
    producer = Producer({**common, "compression.type": "lz4"})
    for number in range(RECORDS):
        producer.produce(topic, f"librdkafka {number}", f"key-{number}", headers={"n": str(number)})
    assert producer.flush(_WAIT_S) == 0
    consumer = Consumer({**common, "group.id": f"{topic}-rd", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline, seen = time.monotonic() + _WAIT_S, 0
    while seen < RECORDS and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        seen += message is not None and not message.error()
    consumer.commit(asynchronous=False)
    consumer.close()
    assert seen >= RECORDS


def kafka_python(broker: Any, topic: str) -> None:
    """kafka-python, held to versions that tshark 4.0 knows."""
    from kafka import KafkaConsumer, KafkaProducer

    common = {
        "bootstrap_servers": broker.bootstrap_servers,
        "client_id": "capture-kafka-python",
        "api_version": (2, 0),
    }
    producer = KafkaProducer(**common, compression_type="gzip")
    for number in range(RECORDS):
        producer.send(topic, f"kafka-python {number}".encode(), f"key-{number}".encode())
    producer.flush(_WAIT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        **common,
        group_id=f"{topic}-kp",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    seen = 0
    for _ in consumer:
        seen += 1
        if seen == RECORDS:
            break
    consumer.commit()
    consumer.close()
    assert seen == RECORDS


def ours(broker: Any, topic: str) -> None:
    """This package, in every version of its reading APIs that tshark 4.0 knows, and its own."""
    from pyspark_kafkaproto.messages.fetch import FetchRequest
    from pyspark_kafkaproto.messages.list_offsets import ListOffsetsRequest
    from pyspark_kafkaproto.messages.metadata import MetadataRequest

    config = ClientConfig.parse(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "capture-ours"}
    )
    deadline = Deadline.after(_WAIT_S)
    connection = Connection.open(config.bootstrap_servers[0], config, deadline)
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_bytes=1 << 20, topics=(FetchRequest.Topic(topic=topic, partitions=(part,)),)
    )
    Topic = ListOffsetsRequest.Topic  # noqa: N806  a class
    last = Topic.Partition(partition_index=0, timestamp=-1)
    offsets = ListOffsetsRequest(replica_id=-1, topics=(Topic(name=topic, partitions=(last,)),))
    metadata = MetadataRequest(topics=(MetadataRequest.Topic(name=topic),))
    for request, versions in (
        (metadata, range(13)),
        (offsets, range(1, 11)),
        (fetch, range(4, 13)),
    ):
        for version in versions:
            connection.send(request, deadline, version)
            connection.receive(deadline)
    connection.close()


CLIENTS: dict[str, Callable[[Any, str], None]] = {
    "java": java,
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "ours": ours,
}


def tshark_answers(capture: Path, port: int) -> list[dict[str, list[str]]]:
    """What tshark says of each packet with Kafka in it: field name to values."""
    fields = [argument for field in FIELDS for argument in ("-e", field)]
    decode = ("-d", f"tcp.port=={port},kafka", "-o", "tcp.desegment_tcp_streams:TRUE")
    command = ["tshark", "-r", str(capture), *decode, "-Y", "kafka", "-T", "json", *fields]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


def only_client(capture: Path, port: int, client_id: str, out: Path) -> None:
    """Keep the connections of one client: a shared broker has others."""
    decode = ("-d", f"tcp.port=={port},kafka")
    which = f'kafka.client_id contains "{client_id}"'
    command = [
        "tshark",
        "-r",
        str(capture),
        *decode,
        "-Y",
        which,
        "-T",
        "fields",
        "-e",
        "tcp.stream",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    streams = sorted({int(word) for word in done.stdout.replace(",", " ").split()})
    assert streams, f"no connection of {client_id} in {capture}"
    chosen = " or ".join(f"tcp.stream=={stream}" for stream in streams)
    command = ["tshark", "-r", str(capture), "-Y", chosen, "-F", "pcap", "-w", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def port_of(broker: Any) -> int:
    return int(broker.bootstrap_servers.split(",")[0].rpartition(":")[2])


def record(name: str, broker: Any, folder: Path) -> Path:
    """One client's traffic, in FOLDER/NAME.pcap; tshark's answers beside it, as JSON."""
    topic = f"capture-{name}-{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    if name == "ours":
        kafka_python(broker, topic)
    every, path = folder / f"{name}-all.pcap", folder / f"{name}.pcap"
    port = port_of(broker)
    with captured(every, broker):
        CLIENTS[name](broker, topic)
    client_id = {"librdkafka": "capture-rdkafka"}.get(name, f"capture-{name}")
    only_client(every, port, client_id, path)
    every.unlink()
    answers = tshark_answers(path, port)
    path.with_suffix(".json").write_text(json.dumps(answers, indent=0) + "\n")
    return path


def main() -> None:
    from tests.brokers import open_broker

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with open_broker(os.environ, folder / "broker") as broker:
        for name in sys.argv[2:] or CLIENTS:
            path = record(name, broker, folder)
            print(path, path.stat().st_size, "bytes, port", port_of(broker))


if __name__ == "__main__":
    main()
