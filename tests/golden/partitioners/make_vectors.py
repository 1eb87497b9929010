"""Makes the vectors beside it with the real clients; run by people, never by tests.

    export KAFKA_BOOTSTRAP_SERVERS=host:port
    python tests/golden/partitioners/make_vectors.py FOLDER_OF_JARS

java.csv       what `BuiltInPartitioner.partitionForKey` and `Utils.murmur2` of the kafka-clients
               among a Kafka's jars say, through JavaPartitions.java (needs a JDK)
librdkafka.csv the partitions that confluent-kafka's delivery reports name, after it wrote each key
               to a broker with each `partitioner`

Keys are hexadecimal. Versions are in the files' first lines.
"""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import uuid
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
JAVA_COUNTS = (1, 7, 12, 1000)
RDKAFKA_COUNTS = (7, 12)
PARTITIONERS = ("murmur2", "consistent_random")


def keys() -> list[bytes]:
    """Each length around the hash's four bytes, high and low bytes, texts and numbers."""
    rng = random.Random(20261121)
    made = [b"", *(bytes([value]) for value in (0, 1, 0x7F, 0x80, 0xFF))]
    made += [bytes([fill]) * size for size in range(1, 10) for fill in (0, 0x7F, 0x80, 0xFF)]
    made += [rng.randbytes(size) for size in range(1, 70)]
    made += [str(number).encode() for number in range(0, 2000, 37)]
    made += [text.encode() for text in ("orders", "Zürich", "日本語", "a-little-bit-long-string")]
    made += [rng.randbytes(size) for size in (255, 256, 1000)]
    return list(dict.fromkeys(made))


def ask_java(jars: Path) -> None:
    clients = next(jars.glob("kafka-clients-*.jar"))
    done = subprocess.run(
        ["java", "-cp", f"{jars}/*", str(HERE / "JavaPartitions.java"), *map(str, JAVA_COUNTS)],
        input="".join(f"{key.hex()}\n" for key in keys()),
        capture_output=True,
        check=True,
        text=True,
    )
    titles = ",".join(f"of_{count}" for count in JAVA_COUNTS)
    origin = f"# {clients.name}, tests/golden/partitioners/make_vectors.py\n"
    (HERE / "java.csv").write_text(f"{origin}key,murmur2,{titles}\n{done.stdout}")


def ask_librdkafka(servers: str) -> None:
    """An empty key has no partition of its own under consistent_random: it is left out there."""
    rows = {key: [key.hex()] for key in keys()}
    titles = ["key"]
    for partitioner in PARTITIONERS:
        for count in RDKAFKA_COUNTS:
            titles.append(f"{partitioner}_of_{count}")
            placed = partitions_of(servers, partitioner, count)
            for key, row in rows.items():
                is_placed = key or partitioner == "murmur2"
                row.append(str(placed[key]) if is_placed else "")
    versions = f"librdkafka {confluent_kafka.libversion()[0]}"
    with (HERE / "librdkafka.csv").open("w", newline="") as file:
        file.write(f"# {versions}, tests/golden/partitioners/make_vectors.py\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([titles, *rows.values()])


def partitions_of(servers: str, partitioner: str, count: int) -> dict[bytes, int]:
    topic = f"vectors-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, count, 1)])[topic].result(30)
    placed: dict[bytes, int] = {}

    def note(error: object, message: confluent_kafka.Message) -> None:
        if error:
            raise RuntimeError(error)
        placed[message.key() or b""] = message.partition()

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "partitioner": partitioner, "linger.ms": 5}
    )
    for key in keys():
        producer.produce(topic, b"value", key, on_delivery=note)
    if producer.flush(60):
        raise TimeoutError("not all records were delivered")
    admin.delete_topics([topic])[topic].result(30)
    return placed


if __name__ == "__main__":
    ask_java(Path(sys.argv[1]))
    ask_librdkafka(os.environ["KAFKA_BOOTSTRAP_SERVERS"])
