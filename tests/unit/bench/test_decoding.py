from __future__ import annotations

from reading.decoding import Decoding

from pyspark_kafkaproto import OffsetRange
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import NewRecord, encode_batch

_CONFIG = ClientConfig.parse({"bootstrap.servers": "127.0.0.1:9092"})


def _block(first: int, batches: int, records: int) -> bytes:
    rows = [NewRecord(b"value", None, 0)] * records
    return b"".join(
        encode_batch(rows, base_offset=first + number * records) for number in range(batches)
    )


def test_a_block_is_decoded_whole_until_there_are_rows_enough() -> None:
    decoding = Decoding(_CONFIG, OffsetRange("orders", 0, 7, 7 + 300), _block(7, 3, 100))
    assert decoding.count(1) == 300
    assert decoding.count(300) == 300
    assert decoding.count(301) == 600
