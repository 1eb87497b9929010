"""Keys go where the real clients put them: vectors made by Kafka's Java client and librdkafka."""

from __future__ import annotations

import csv
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.records import reference_write

FOLDER = Path(__file__).parent / "partitioners"


def vectors(name: str) -> list[dict[str, str]]:
    lines = (FOLDER / name).read_text().splitlines()[1:]
    return list(csv.DictReader(lines))


def placed(implementation: str, rows, partitions: int, partitioner: str) -> list[int]:
    keys = pa.array([bytes.fromhex(row["key"]) for row in rows])
    columns = write_columns(pa.RecordBatch.from_arrays([keys], ["key"]))
    module = import_module(f"pyspark_kafkaproto.records.{implementation}")
    return memoryview(module.partition_keys(columns, partitions, partitioner)).tolist()


IMPLEMENTATIONS = pytest.mark.parametrize("implementation", ["_kernel_write", "reference_write"])


@IMPLEMENTATIONS
@pytest.mark.parametrize("partitions", [1, 7, 12, 1000])
def test_murmur2_is_the_java_clients(implementation, partitions):
    rows = vectors("java.csv")
    expected = [int(row[f"of_{partitions}"]) for row in rows]
    assert placed(implementation, rows, partitions, "murmur2") == expected


def test_murmur2_itself_is_the_java_clients():
    for row in vectors("java.csv"):
        hashed = reference_write.murmur2(bytes.fromhex(row["key"]))
        assert hashed == int(row["murmur2"]) & 0xFFFFFFFF, row["key"]


@IMPLEMENTATIONS
@pytest.mark.parametrize("partitions", [7, 12])
@pytest.mark.parametrize("partitioner", ["murmur2", "consistent_random"])
def test_keys_go_where_librdkafka_sent_them(implementation, partitions, partitioner):
    rows = vectors("librdkafka.csv")
    expected = [int(row[f"{partitioner}_of_{partitions}"] or -1) for row in rows]
    assert placed(implementation, rows, partitions, partitioner) == expected
    assert expected.count(-1) == (partitioner == "consistent_random")
