"""Runs kafka-python 2.0.2 against a broker and keeps the bytes of the message sets that it sends.

    python old_client.py host:port known.json out-folder

Needs that release (`pip install kafka-python==2.0.2 lz4 python-snappy`), which no other part of
this project can share an environment with; record.py runs it. Each topic is created by its first
write. The bytes are taken where the client hands them to its socket.
"""

import json
import sys
from pathlib import Path

from kafka import KafkaProducer
from kafka.protocol.parser import KafkaProtocol

# What the client is told of the broker's age decides what it writes.
API_VERSIONS = {0: (0, 8, 2), 1: (0, 10)}
CODECS = (None, "gzip", "snappy", "lz4")

_sent = []
_send_bytes = KafkaProtocol.send_bytes


def _keep(protocol):
    data = _send_bytes(protocol)
    _sent.append(data)
    return data


def main():
    servers, known, folder = sys.argv[1:]
    records = json.loads(Path(known).read_text())["records"]
    KafkaProtocol.send_bytes = _keep
    for magic, api_version in API_VERSIONS.items():
        for codec in CODECS:
            name = f"magic{magic}-{codec or 'none'}"
            produce(servers, f"old-{name}", api_version, codec, records)
            Path(folder, f"{name}.frames").write_bytes(b"".join(_sent))


def produce(servers, topic, api_version, codec, records):
    """Write the records in one request, and once more in another."""
    producer = KafkaProducer(
        bootstrap_servers=servers,
        api_version=api_version,
        compression_type=codec,
        acks=1,
        linger_ms=60_000,
    )
    producer.partitions_for(topic)
    _sent.clear()
    # Twice, so that the second set has offsets of its own in the log.
    for first in (0, len(records)):
        sent = [
            producer.send(
                topic,
                _bytes(record["value"]),
                _bytes(record["key"]),
                timestamp_ms=record["timestamp_ms"],
            )
            for record in records
        ]
        producer.flush(60)
        assert [future.get(10).offset - first for future in sent] == list(range(len(records)))
    producer.close()


def _bytes(text):
    return None if text is None else bytes.fromhex(text)


if __name__ == "__main__":
    main()
