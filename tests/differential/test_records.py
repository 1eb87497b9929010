"""Record batches against Kafka's own classes: they read ours, we read theirs.

What is compared: every field of the header, every record, and where nothing is compressed the
bytes. `ENCODERS` are all ways in which this package writes a batch; the decoders are two.
"""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pyarrow as pa
import pytest

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.records import (
    NewRecord,
    _kernel,
    _kernel_write,
    encode_batch,
    layout,
    reference,
    reference_write,
)
from tests.brokers import dump_log_segments
from tests.differential.kafka_records import (
    NO_TIME,
    NOW_MS,
    Batch,
    all_rows,
    random_records,
    with_deltas_by_index,
)
from tests.golden import record_files
from tests.golden.decoded_rows import read_rows

pytestmark = pytest.mark.differential

SEED = 20261121
# How often each kind of batch is made: always, and in the long run.
each_length = pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=pytest.mark.long)])
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
DECODERS = [_kernel, reference]
# Producer id, epoch and sequence, whether in a transaction.
PRODUCERS = ((-1, -1, -1, False), (5, 0, 0, False), (2**63 - 1, 32767, 2**31 - 1, True))


def encode_with_every_field(batch):
    """The reference encoder: all there is in a header can be said."""
    is_kept = batch.delete_horizon != NO_TIME
    attributes = layout.LOG_APPEND_TIME * batch.is_stamped
    attributes |= layout.TRANSACTIONAL * batch.is_transactional
    attributes |= layout.DELETE_HORIZON * is_kept
    return encode_batch(
        batch.records,
        base_offset=batch.base_offset,
        codec=batch.codec,
        attributes=attributes,
        base_timestamp_ms=batch.delete_horizon if is_kept else None,
        max_timestamp_ms=batch.log_append_time if batch.is_stamped else None,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )


def encode_with_builder(module):
    """The writer's way: Arrow columns through a BatchBuilder."""

    def encode(batch):
        builder = module.BatchBuilder(codec=batch.codec, limit_bytes=1 << 24)
        assert builder.append(arrow_columns(batch.records), None, 0, NOW_MS) == len(batch.records)
        return builder.finish(
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
        )

    encode.__name__ = f"encode_with_{module.__name__.rpartition('.')[2]}"
    return encode


def arrow_columns(records):
    headers = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    return write_columns(
        pa.record_batch(
            {
                "key": pa.array([record.key for record in records], pa.binary()),
                "value": pa.array([record.value for record in records], pa.binary()),
                "timestamp": pa.array(
                    [record.timestamp_ms * 1000 for record in records], pa.timestamp("us", "UTC")
                ),
                "headers": pa.array(
                    [
                        [{"key": key.decode(), "value": value} for key, value in record.headers]
                        for record in records
                    ],
                    headers,
                ),
            }
        ),
        timestamp_column="timestamp",
    )


# Each takes a Batch as a producer makes it: no stamp, no holes, base offset 0.
ENCODERS = [
    encode_with_every_field,
    encode_with_builder(_kernel_write),
    encode_with_builder(reference_write),
]

each_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


def batches(codec, random):
    for base_offset, log_append_time, producer, leader_epoch, delete_horizon in product(
        (0, 2**53), (NO_TIME, NOW_MS + 7), PRODUCERS, (-1, 2**31 - 1), (NO_TIME, NOW_MS + 99)
    ):
        yield Batch(
            random_records(random),
            codec=codec,
            base_offset=base_offset,
            log_append_time=log_append_time,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            is_transactional=producer[3],
            leader_epoch=leader_epoch,
            delete_horizon=delete_horizon,
        )


def assert_java_reads(oracle, block, batch):
    (found,) = oracle.read(block)
    assert found["rows"] == batch.rows
    task = batch.task()
    names = ("magic", "baseOffset", "codec", "timestampType", "producerId", "producerEpoch")
    names += ("baseSequence", "isTransactional", "isControl", "leaderEpoch", "deleteHorizon")
    assert {name: found[name] for name in names} == {name: task[name] for name in names}
    assert found["lastOffset"] == batch.rows[-1].offset
    assert found["maxTimestamp"] == max(row.timestamp_ms for row in batch.rows)
    if batch.base_sequence == 0:
        # Sequences follow offset deltas.
        deltas = [record.offset_delta for record in batch.records]
        assert [record["sequence"] for record in found["records"]] == deltas


@each_codec
def test_java_reads_what_we_write_and_we_what_java_writes(codec, record_oracle, compared):
    for batch in batches(codec, Random(f"{SEED} {codec}")):
        ours = encode_with_every_field(batch)
        assert_java_reads(record_oracle, ours, batch)
        theirs = record_oracle.write(batch.task())
        for decoder in DECODERS:
            assert read_rows(decoder, theirs) == batch.rows
            assert read_rows(decoder, ours) == batch.rows
        # A delete horizon is relative to what Java kept before; a stamp replaces what was given.
        if codec == 0 and not batch.is_stamped:
            assert ours == theirs
        compared["record batches"] += 1


@pytest.mark.parametrize("encode", ENCODERS, ids=lambda encode: encode.__name__)
@each_codec
@each_length
def test_java_reads_what_each_encoder_writes(codec, encode, rounds, record_oracle, compared):
    random = Random(f"{SEED} {codec} {encode.__name__}")
    for _, (producer_id, epoch, sequence, is_transactional) in product(range(rounds), PRODUCERS):
        batch = Batch(
            random_records(random, has_holes=False),
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        written = encode(batch)
        assert_java_reads(record_oracle, written, batch)
        if codec == 0:
            assert written == record_oracle.write(batch.task())
        compared["record batches"] += 1


def test_a_control_batch_of_java_is_no_row_but_moves_the_position(record_oracle, compared):
    for marker, base_offset in (("ABORT", 0), ("COMMIT", 2**40)):
        batch = Batch((), base_offset=base_offset, producer_id=9, producer_epoch=3)
        batch_task = {**batch.task(), "isControl": True, "isTransactional": True}
        block = record_oracle.write({**batch_task, "logAppendTime": NOW_MS, "marker": marker})
        for decoder in DECODERS:
            assert read_rows(decoder, block) == []
            assert decoder.skim(block, 0).next_offset == base_offset + 1
        compared["record batches"] += 1


@pytest.mark.parametrize(("kind", "name"), [(0, "ABORT"), (1, "COMMIT")])
def test_java_reads_a_control_batch_of_ours(kind, name, record_oracle, compared):
    marker = NewRecord(b"\0\0" + (7).to_bytes(4), layout.CONTROL_KEY.pack(0, kind), NOW_MS)
    block = encode_batch(
        [marker], attributes=layout.CONTROL | layout.TRANSACTIONAL, producer_id=9, producer_epoch=3
    )
    (found,) = record_oracle.read(block)
    assert (found["isControl"], found["isTransactional"]) == (True, True)
    assert [record["control"] for record in found["records"]] == [name]
    theirs = {"isControl": True, "isTransactional": True, "logAppendTime": NOW_MS, "marker": name}
    task = Batch((), producer_id=9, producer_epoch=3).task()
    assert block == record_oracle.write({**task, **theirs})
    compared["record batches"] += 1


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", list(CODECS.values())[:4], ids=list(CODECS)[:4])
@each_length
def test_we_read_what_java_writes_in_old_formats(codec, magic, rounds, record_oracle, compared):
    random = Random(f"{SEED} {codec} {magic}")
    stamps = (NO_TIME, NOW_MS + 7) if magic else (NO_TIME,)
    for _, base_offset, stamp in product(range(rounds), (0, 1000), stamps):
        batch = Batch(
            random_records(random, has_headers=False),
            magic=magic,
            codec=codec,
            base_offset=base_offset,
            log_append_time=stamp,
        )
        block = record_oracle.write(batch.task())
        assert all_rows(record_oracle.read(block)) == batch.rows
        for decoder in DECODERS:
            assert read_rows(decoder, block) == batch.rows
        compared["message sets of old formats"] += 1


@pytest.mark.parametrize("name", record_files.NAMES)
def test_java_reads_the_golden_files_as_we_know_them(name, record_oracle):
    found = record_oracle.read(record_files.read_bytes(name))
    assert {batch["magic"] for batch in found} == {record_files.magic_of(name)}
    assert all_rows(found) == record_files.known_rows(name)


def test_dump_log_segments_reads_our_batches(tmp_path, compared):
    segment = tmp_path / "00000000000000000000.log"
    random, log, expected = Random(SEED), [], []
    for codec, stamp, producer in product(CODECS.values(), (NO_TIME, NOW_MS), PRODUCERS):
        records = tuple(
            NewRecord(f"value {n}".encode() * (n + 1), f"k{n}".encode(), NOW_MS + n, (), n)
            for n in range(random.randint(1, 20))
        )
        batch = with_deltas_by_index(
            Batch(
                records,
                codec=codec,
                base_offset=len(expected),
                log_append_time=stamp,
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=producer[2],
                is_transactional=producer[3],
                leader_epoch=0,
            )
        )
        log.append(encode_with_every_field(batch))
        expected += batch.rows
    segment.write_bytes(b"".join(log))
    tools = KafkaTools("")
    dumped = tools.run_tool(dump_log_segments(tools), "--files", str(segment), "--print-data-log")
    assert len(re.findall(r"^baseOffset: .* isvalid: true$", dumped, re.MULTILINE)) == len(log)
    assert "isvalid: false" not in dumped
    pattern = r"^\| offset: (\d+) (\w+): (\d+) .* key: (\S*) payload: (.*)$"
    assert re.findall(pattern, dumped, re.MULTILINE) == [
        (
            str(row.offset),
            ("CreateTime", "LogAppendTime")[row.timestamp_type],
            str(row.timestamp_ms),
            row.key.decode(),
            row.value.decode(),
        )
        for row in expected
    ]
    compared["record batches"] += len(log)
