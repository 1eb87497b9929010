"""Records the files of this folder anew: old and new clients, a real Apache Kafka 3.9.1.

    python -m venv old && old/bin/pip install kafka-python==2.0.2 lz4 python-snappy
    PYTHONPATH=. python tests/golden/record_batches/record.py old/bin/python

Each file is the `records` field of a request or of an answer, as it stood on the wire; README.md
says which, known.json what is in them.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.devbroker.jars import class_path
from pyspark_kafkaproto.devbroker.java import find_java
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from pyspark_kafkaproto.records import Columns, decode
from pyspark_kafkaproto.wire.frame import decode_request

FOLDER = Path(__file__).resolve().parent
BROKER = "3.9.1"
CODECS = ("none", "gzip", "snappy", "lz4")
ANSWER_S = 30.0
COMPACTION_S = 60.0
OVERHEAD = 12  # offset and length, which the length does not count
MAGIC_POS = 16
LAST_DELTA_POS = 23  # this and the next of a batch of magic 2
MAX_TIMESTAMP_POS = 35
SOON_COMPACTED = {"log.cleaner.backoff.ms": "100"}
# Two batches fill a segment, and everything but the newest segment is compacted.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "300",
    "min.cleanable.dirty.ratio": "0.001",
}


def main() -> None:
    """Record everything."""
    with DevBroker(version=BROKER, properties=SOON_COMPACTED) as broker:
        servers = broker.bootstrap_servers
        _run_old_client(sys.argv[1], servers)
        for codec in (*CODECS, "zstd"):
            broker.create_topic(
                f"java-{codec}-LogAppendTime", configs={"message.timestamp.type": "LogAppendTime"}
            )
        for codec in ("none", "gzip"):
            broker.create_topic(f"java-{codec}-compacted", configs=COMPACTED)
        _run_java_producer(servers)
        endpoint = Endpoint.parse(servers, "broker")
        config = ClientConfig.parse({"bootstrap.servers": servers})
        connection = Connection.open(endpoint, config, Deadline.after(ANSWER_S))
        _fetch_all(connection)
        connection.close()


def _run_old_client(python: str, servers: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script, known = FOLDER / "old_client.py", FOLDER / "known.json"
        subprocess.run([python, script, servers, known, folder], check=True, timeout=300)
        for path in sorted(Path(folder).glob("*.frames")):
            name = f"kafka-python-sent-{path.stem}"
            _keep(name, _produced(path.read_bytes()))


def _produced(frames: bytes) -> bytes:
    """The first of the two message sets that a producer sent."""
    sets = []
    while frames:
        end = 4 + int.from_bytes(frames[:4])
        if int.from_bytes(frames[4:6]) == ProduceRequest.API_KEY:
            _, request = decode_request(ProduceRequest, frames[4:end])
            sets += [p.records for topic in request.topic_data for p in topic.partition_data]
        frames = frames[end:]
    first, _ = sets
    return bytes(first)


def _run_java_producer(servers: str) -> None:
    command = [find_java(), "-cp", class_path(BROKER), str(FOLDER / "JavaProducer.java"), servers]
    lines = "\n".join(
        " ".join("-" if field is None else f"={field}" for field in _java_fields(record))
        for record in json.loads((FOLDER / "known.json").read_text())["records"]
    )
    subprocess.run(command, input=lines, text=True, check=True, timeout=120)


def _java_fields(record: dict[str, str | int | None]) -> list[str | int | None]:
    return [record["timestamp_ms"], record["key"], record["value"]]


def _fetch_all(connection: Connection) -> None:
    for codec in CODECS:
        # What was sent as magic 1 is stored as magic 2; the broker writes it back for old clients.
        for version in (1, 3):
            magic = 0 if version < 2 else 1
            topic = f"old-magic1-{codec}"
            name = f"kafka-fetch-v{version}-magic{magic}-{codec}"
            _keep(name, _fetch(connection, topic, version))
            _keep(f"{name}-from-6", _fetch(connection, topic, version, fetch_offset=6))
        stamped = f"java-{codec}-LogAppendTime"
        _keep(f"kafka-fetch-v3-magic1-{codec}-log-append-time", _fetch(connection, stamped, 3))
    for codec in (*CODECS, "zstd"):
        for kind, suffix in (("CreateTime", ""), ("LogAppendTime", "-log-append-time")):
            topic = f"java-{codec}-{kind}"
            _keep(f"java-producer-magic2-{codec}{suffix}", _fetch(connection, topic, 12))
    _keep_log_append_times()
    for codec in ("none", "gzip"):
        topic = f"java-{codec}-compacted"
        _wait_until_compacted(connection, topic)
        for version, magic in ((1, 0), (3, 1), (12, 2)):
            name = f"kafka-fetch-v{version}-magic{magic}-{codec}-compacted"
            _keep(name, _fetch(connection, topic, version))
            _keep(f"{name}-from-6", _fetch(connection, topic, version, fetch_offset=6))
    _keep_last_offsets()


def _keep_log_append_times() -> None:
    """The one fact that the broker made up: by codec, the time it stamped on the batch."""
    times = {}
    for codec in (*CODECS, "zstd"):
        batch = (FOLDER / f"java-producer-magic2-{codec}-log-append-time.bin").read_bytes()
        (times[codec],) = struct.unpack_from(">q", batch, MAX_TIMESTAMP_POS)
    text = json.dumps(times, indent=2)
    (FOLDER / "log_append_times.json").write_text(f"{text}\n", encoding="utf-8")


def _wait_until_compacted(connection: Connection, topic: str) -> None:
    deadline = Deadline.after(COMPACTION_S)
    while b"a10" not in (records := _fetch_plain(connection, topic)) or b"a0" in records:
        deadline.check(f"waiting for the compaction of {topic}")
        time.sleep(0.2)


def _fetch_plain(connection: Connection, topic: str) -> bytes:
    """The values of the topic's records, end to end."""
    records = _fetch(connection, topic, 12)
    rows = decode(records, start=0, stop=1 << 62, wanted=Columns.VALUE)
    return b"" if rows.value is None else bytes(rows.value.data)


def _fetch(connection: Connection, topic: str, version: int, fetch_offset: int = 0) -> bytes:
    partition = FetchRequest.Topic.Partition(
        partition=0, fetch_offset=fetch_offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        topics=(FetchRequest.Topic(topic=topic, partitions=(partition,)),), max_wait_ms=1000
    )
    answer = connection.request(request, Deadline.after(ANSWER_S), version)
    found = answer.responses[0].partitions[0]
    if found.error_code or not found.records:
        raise SystemExit(f"{topic}, Fetch v{version}: error {found.error_code}, no records")
    return bytes(found.records)


def _keep(name: str, data: bytes) -> None:
    (FOLDER / f"{name}.bin").write_bytes(data)
    offset, left = _last_whole(data)
    print(f"{name}.bin: {len(data)} bytes, magic {data[16]}, to {offset}, then {left} bytes")


def _keep_last_offsets() -> None:
    """By file the last offset that an answer holds whole: its size is not that of its content."""
    paths = sorted(FOLDER.glob("kafka-fetch-*.bin"))
    text = json.dumps({path.stem: _last_whole(path.read_bytes())[0] for path in paths}, indent=2)
    (FOLDER / "last_offsets.json").write_text(f"{text}\n", encoding="utf-8")


def _last_whole(data: bytes) -> tuple[int, int]:
    """The last offset of the last whole batch or message, and how many bytes are behind it."""
    pos, last = 0, -1
    while len(data) - pos >= OVERHEAD:
        offset, length = struct.unpack_from(">qi", data, pos)
        if offset < 0 or length > len(data) - pos - OVERHEAD:
            break
        is_v2 = data[pos + MAGIC_POS] == 2
        (delta,) = struct.unpack_from(">i", data, pos + LAST_DELTA_POS) if is_v2 else (0,)
        last = offset + delta
        pos += OVERHEAD + length
    return last, len(data) - pos


if __name__ == "__main__":
    main()
