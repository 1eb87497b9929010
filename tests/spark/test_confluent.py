"""Values framed by Confluent's serialisers, taken apart by expressions of Spark's own."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.spark.confluent import payload, protobuf_payload, schema_id

pytestmark = pytest.mark.spark

# value, schema id, payload, payload after Protobuf's indexes
VALUES = [
    (b"\x00\x00\x00\x00\x07avro", 7, b"avro", None),
    (b"\x00\x00\x01\x86\xa0\x00proto", 100_000, b"\x00proto", b"proto"),
    (b"\x00\x00\x00\x00\x07\x04\x02\x80\x01\xff", 7, b"\x04\x02\x80\x01\xff", b"\xff"),
    (b"\x00\x00\x00\x00\x07\x02\x00", 7, b"\x02\x00", b""),
    (b"\x00\x00\x00\x00\x07", 7, b"", None),
    (b"\x00\xff\xff\xff\xff\x02\x00", None, b"\x02\x00", b""),  # no int can be that id
    (b"\x00\x00\x00\x07", None, None, None),
    (b'{"plain":"json"}', None, None, None),
    (b"", None, None, None),
    (None, None, None, None),
]


def test_schema_id_and_payload_are_told_apart(spark):
    rows = spark.createDataFrame([(row[0],) for row in VALUES], "value binary")
    found = rows.select(
        "value", schema_id("value"), payload(rows.value), protobuf_payload("value")
    ).collect()
    as_bytes = [
        tuple(bytes(cell) if isinstance(cell, bytearray) else cell for cell in row) for row in found
    ]
    assert as_bytes[1:] == VALUES[1:]
    assert as_bytes[0][:3] == VALUES[0][:3]
