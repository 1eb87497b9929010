"""From the fake log to Arrow record batches: the whole way of a read task."""

import logging

import pyarrow as pa
import pytest

from pyspark_kafkaproto.arrow import COLUMN_NAMES, schema_for
from pyspark_kafkaproto.client import Mode, ReadSettings, read_batches
from pyspark_kafkaproto.client.reading import decode as decode_module
from pyspark_kafkaproto.errors import CorruptRecords, LocalProtocolError
from pyspark_kafkaproto.records import DEFAULT_CHUNK_BYTES, NewRecord, encode_batch
from tests.fake_log import Batch
from tests.forks import in_child
from tests.unit.records.messages import message, message_set, wrapper

ALL = schema_for(COLUMN_NAMES)
ABORTED_ID, COMMITTED_ID = 7, 8
TRANSACTIONAL = 0x10


def read(task, config, schema=ALL, **settings):
    batches = list(read_batches(task, config, ReadSettings(**settings), schema))
    assert all(batch.schema is schema or batch.schema == schema for batch in batches)
    return pa.Table.from_batches(batches, schema)


def _append(log, *records, **fields):
    data = encode_batch(records, base_offset=log.stop, **fields)
    log.stop += len(records)
    log.batches.append(Batch(data, log.stop))


def test_every_column_is_there(brokers, config, task):
    log = brokers.logs["orders", 1]
    log.start = log.stop = 40
    record = NewRecord(b"v", b"k", 1_700_000_000_123, [(b"h", b"1"), (b"h", None)])
    _append(log, record, NewRecord(None, None, 1_700_000_000_456))
    rows = read(task((1, 40, 42)), config()).to_pylist()
    timestamps = [row.pop("timestamp").timestamp() for row in rows]
    assert timestamps == [1_700_000_000.123, 1_700_000_000.456]
    where = {"topic": "orders", "partition": 1, "timestampType": 0}
    assert rows == [
        where
        | {
            "key": b"k",
            "value": b"v",
            "offset": 40,
            "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        },
        where | {"key": None, "value": None, "offset": 41, "headers": None},
    ]


def test_a_log_from_before_record_batches(brokers, config, task):
    """Positions move by the offsets of wrappers, which are those of their last messages."""
    log = brokers.logs["orders", 1]
    old = [
        Batch(message(0, 0, b"v0", b"k"), 1),
        Batch(wrapper(0, 2, message_set(0, (1, 2)), codec=1), 3),
        Batch(wrapper(1, 6, message_set(1, (0, 3), timestamp_ms=5), codec=3), 7),
    ]
    log.batches += old
    log.stop = 7
    _append(log, NewRecord(b"v7", timestamp_ms=7))
    limits = config(max_partition_fetch_bytes=len(old[1].data))
    rows = read(task((1, 0, 8)), limits).to_pylist()
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 6, 7]
    assert [row["timestampType"] for row in rows] == [-1, -1, -1, 0, 0, 0]
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == [-1, -1, -1, 5, 5, 7]
    assert [row["offset"] for row in read(task((1, 2, 4)), limits).to_pylist()] == [2, 3]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("stop", [3, 4])
def test_a_wrapper_as_a_producer_sends_it_is_no_answer(brokers, config, task, magic, stop):
    """It says offset 0 and holds three: a broker gives it the offset of its last message, always.

    The next Fetch would begin at 1, and what follows could be rows that were given already.
    """
    log = brokers.logs["orders", 1]
    log.batches.append(Batch(wrapper(magic, 0, message_set(magic, (0, 1, 2)), codec=1), 1))
    log.stop = 1
    _append(log, NewRecord(b"again"), NewRecord(b"v2"), NewRecord(b"v3"))
    one_by_one = config(max_partition_fetch_bytes=len(log.batches[0].data))
    with pytest.raises(CorruptRecords, match=r"read to offset 3, but its batch headers end at 1"):
        read(task((1, 0, stop)), one_by_one)
    assert read(task((1, 0, 1)), one_by_one).num_rows == 1


@pytest.mark.parametrize("names", [["offset"], ["value", "key"], ["partition", "topic"]])
def test_only_what_was_asked_for_comes_in_its_order(brokers, config, task, names):
    brokers.logs["orders", 0].fill(3)
    table = read(task((0, 5, 25)), config(), schema_for(names))
    assert table.column_names == names
    assert table.num_rows == 20


@pytest.mark.slow
def test_rows_of_each_partition_come_in_order_over_many_blocks(brokers, config, task):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(30, size_bytes=3000)
    limits = config(max_partition_fetch_bytes=100_000)
    table = read(
        task((0, 3, 297), (1, 0, 300)), limits, schema_for(["partition", "offset", "value"])
    )
    for partition, start, stop in ((0, 3, 297), (1, 0, 300)):
        rows = [row for row in table.to_pylist() if row["partition"] == partition]
        assert [row["offset"] for row in rows] == list(range(start, stop))
        assert all(row["value"].startswith(b"%d " % row["offset"]) for row in rows)


def _transactions(brokers):
    """Ten records of an aborted transaction, ten of a committed one, and the log's aborted list."""
    log = brokers.logs["orders", 0]
    for producer_id in (ABORTED_ID, COMMITTED_ID):
        log.append(*[b"x"] * 10, producer_id=producer_id, attributes=TRANSACTIONAL)
    log.aborted = [(ABORTED_ID, 0)]


@pytest.mark.parametrize(
    ("level", "offsets"),
    [("read_uncommitted", range(20)), ("read_committed", range(10, 20))],
)
def test_aborted_transactions_are_rows_only_of_read_uncommitted(
    brokers, config, task, level, offsets
):
    _transactions(brokers)
    if level == "read_uncommitted":
        brokers.logs["orders", 0].aborted = []  # brokers name them only to read_committed
    table = read(task((0, 0, 20)), config(isolation_level=level), schema_for(["offset"]))
    assert table["offset"].to_pylist() == list(offsets)


def test_a_transaction_whose_abort_was_read_in_one_piece_takes_none_of_the_next(
    brokers, config, task
):
    """The producer goes on under its id: what it writes behind the marker is committed."""
    log = brokers.logs["orders", 0]
    sent = {"producer_id": ABORTED_ID, "attributes": TRANSACTIONAL}
    chunk = b"x" * (DEFAULT_CHUNK_BYTES + 1)
    marker = NewRecord(b"\0\0\0\0\0\0", b"\0\0\0\0")
    log.append(b"aborted", **sent)
    _append(log, marker, **sent | {"attributes": TRANSACTIONAL | 0x20})
    log.append(chunk, codec=1)  # all comes in one answer
    log.append(b"committed", **sent)
    log.aborted = [(ABORTED_ID, 0)]
    committed = config(isolation_level="read_committed")
    rows = read(task((0, 0, 4)), committed, schema_for(["offset"]))
    assert rows["offset"].to_pylist() == [2, 3]


@pytest.mark.slow
def test_a_timestamp_that_spark_cannot_hold_has_sparks_name_for_it(brokers, config, task):
    nanoseconds = 1_700_000_000_000_000_000
    _append(brokers.logs["orders", 0], NewRecord(b"v", timestamp_ms=nanoseconds))
    with pytest.raises(
        CorruptRecords,
        match=r"^\[KAFKA_MALFORMED_RECORD_TIMESTAMP\] orders-0, record batch at offset 0 .*"
        "producer may have written microseconds or nanoseconds",
    ):
        read(task((0, 0, 1)), config())
    [row] = read(task((0, 0, 1)), config(), schema_for(["value"])).to_pylist()
    assert row == {"value": b"v"}


def test_damaged_batch_names_topic_partition_and_offset(brokers, config, task):
    log = brokers.logs["orders", 1].fill(3)
    damaged = bytearray(log.batches[2].data)
    damaged[-3] ^= 1  # in a value
    log.batches[2] = Batch(bytes(damaged), 30)
    with pytest.raises(CorruptRecords, match="orders-1, record batch at offset 20") as caught:
        read(task((1, 0, 30)), config())
    assert caught.value.base_offset == 20
    assert read(task((1, 0, 30)), config(check_crcs=False)).num_rows == 30


def test_headers_and_records_that_disagree_are_no_quiet_loss(brokers, config, task, monkeypatch):
    brokers.logs["orders", 0].fill(3)
    whole = decode_module.decode

    def stopping_early(block, **options):
        return whole(block, **(options | {"stop": 15}))

    monkeypatch.setattr(decode_module, "decode", stopping_early)
    with pytest.raises(CorruptRecords, match=r"orders-0.*read to offset 15.*end at 30"):
        read(task((0, 0, 30)), config())


def test_batch_over_the_limit_is_refused(brokers, config, task):
    brokers.logs["orders", 0].fill(1, size_bytes=1000)
    with pytest.raises(CorruptRecords, match="orders-0"):
        read(task((0, 0, 10)), config(), batch_limit_bytes=5000)


def test_each_range_is_logged_when_it_was_read(brokers, config, task, caplog):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(2)
    with caplog.at_level(logging.INFO, "pyspark_kafkaproto.client"):
        read(task((0, 0, 20), (1, 5, 20)), config())
    lines = [record.getMessage() for record in caplog.records if "rows" in record.getMessage()]
    assert [line.split(",")[:2] for line in lines] == [
        ["read orders-0[0", " 20): 20 rows"],
        ["read orders-1[5", " 20): 15 rows"],
    ]


def test_holes_are_counted(brokers, config, task, caplog):
    log = brokers.logs["orders", 0]
    kept = [NewRecord(b"v", offset_delta=delta) for delta in (0, 4)]
    log.batches.append(Batch(encode_batch(kept, last_offset_delta=9), 10))
    log.stop = 10
    with caplog.at_level(logging.INFO, "pyspark_kafkaproto.client"):
        assert read(task((0, 0, 10)), config()).num_rows == 2
    assert "8 offsets passed over" in caplog.text


@pytest.mark.slow
def test_reading_that_stops_early_closes_what_is_in_flight(brokers, config, task):
    brokers.logs["orders", 0].fill(30, size_bytes=3000)
    batches = read_batches(task((0, 0, 300)), config(), ReadSettings(), ALL)
    next(batches)
    batches.close()
    assert read(task((0, 0, 300)), config()).num_rows == 300


@pytest.mark.slow
def test_a_forked_child_does_not_go_on_with_a_reading_of_its_parents(brokers, config, task):
    """Each would take answers of the other from the socket: sound records looked damaged."""
    brokers.logs["orders", 0].fill(60, size_bytes=3000)
    batches = read_batches(task((0, 0, 600)), config(), ReadSettings(), ALL)
    read_by_parent = next(batches).num_rows

    def go_on():
        with pytest.raises(LocalProtocolError, match=r"reading is that of process .* forked"):
            list(batches)

    assert in_child(go_on) == 0
    assert read_by_parent + sum(batch.num_rows for batch in batches) == 600


# Damaged batches


def _damage(log, number, at=70):
    """Change a byte of a batch, behind its header; its CRC shows it."""
    data = bytearray(log.batches[number].data)
    data[at] ^= 0xFF
    log.batches[number] = log.batches[number]._replace(data=bytes(data))


ASIDE = schema_for(["offset", "value", "aside"], damaged_column="aside")


def test_damaged_batch_fails_the_read_by_default(brokers, config, task):
    _damage(brokers.logs["orders", 0].fill(3), 1)
    with pytest.raises(CorruptRecords, match=r"orders-0, record batch at offset 10 .*CRC-32C"):
        read(task((0, 0, 30)), config())


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("damaged", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_damaged_batches_are_left_out_and_said(brokers, config, task, caplog, damaged, level):
    """To read_committed, too: one without a producer's id is no marker."""
    log = brokers.logs["orders", 0].fill(3)
    for number in damaged:
        _damage(log, number)
    with caplog.at_level(logging.INFO):
        some = config(isolation_level=level)
        rows = read(task((0, 5, 25)), some, mode=Mode.DROPMALFORMED).to_pylist()
    left = [at for at in range(5, 25) if at // 10 not in damaged]
    assert [row["offset"] for row in rows] == left
    for number in damaged:
        assert f"orders-0, record batch at offset {10 * number}" in caplog.text
        assert f"offsets [{10 * number}, {10 * number + 10}) are left out" in caplog.text
    assert f"{20 - len(left)} offsets passed over, {len(damaged)} batches damaged" in caplog.text


@pytest.mark.parametrize(("start", "stop", "left_out"), [(0, 8, (2, 7)), (3, 5, (3, 7))])
def test_damaged_message_leaves_out_all_that_are_inside(
    brokers, config, task, caplog, start, stop, left_out
):
    """Its own offset is that of the last of them; where the first one is, nobody can read."""
    log = brokers.logs["orders", 0]
    log.append(b"v0", b"v1")
    log.batches.append(Batch(wrapper(1, 6, message_set(1, range(5)), codec=1), 7))
    log.stop = 7
    log.append(b"v7")
    _damage(log, 1, at=40)
    with caplog.at_level(logging.INFO):
        rows = read(task((0, start, stop)), config(), ASIDE, mode=Mode.PERMISSIVE).to_pylist()
    sound = [at for at in (0, 1, 7) if start <= at < stop]
    assert [row["offset"] for row in rows if row["aside"] is None] == sound
    assert [row["offset"] for row in rows if row["aside"] is not None] == [left_out[0]]
    assert f"offsets [{left_out[0]}, {left_out[1]}) are left out" in caplog.text
    passed_over = stop - start - len(sound)
    assert f"{len(sound)} rows" in caplog.text
    assert f"{passed_over} offsets passed over, 1 batches damaged" in caplog.text


def test_hole_before_a_damaged_batch_is_passed_over_with_it(brokers, config, task, caplog):
    """Rows and what was passed over make up the range, as they do where nothing is damaged."""
    log = brokers.logs["orders", 0].fill(3)
    del log.batches[1]
    _damage(log, 1)
    with caplog.at_level(logging.INFO):
        assert read(task((0, 0, 30)), config(), mode=Mode.DROPMALFORMED).num_rows == 10
    assert "10 rows" in caplog.text
    assert "20 offsets passed over, 1 batches damaged" in caplog.text


def test_damaged_batch_is_kept_aside_as_it_came(brokers, config, task):
    log = brokers.logs["orders", 0].fill(3)
    _damage(log, 1)
    rows = read(task((0, 0, 30)), config(), ASIDE, mode=Mode.PERMISSIVE).to_pylist()
    assert [row["offset"] for row in rows] == [*range(11), *range(20, 30)]
    kept = [row for row in rows if row["aside"] is not None]
    assert [(row["offset"], row["value"]) for row in kept] == [(10, None)]
    assert kept[0]["aside"]["data"] == log.batches[1].data
    assert "CRC-32C" in kept[0]["aside"]["reason"]


@pytest.mark.parametrize("codec", [0, 3])
@pytest.mark.parametrize("mode", Mode)
def test_a_batch_over_the_limit_is_not_damaged(brokers, config, task, mode, codec):
    """It fails whatever the mode: its records are good, and would be lost."""
    log = brokers.logs["orders", 0].fill(1)
    _append(log, NewRecord(b"x" * 5000), codec=codec)
    settings = ReadSettings(mode=mode, batch_limit_bytes=1000)
    batches = read_batches(task((0, 0, 11)), config(), settings, schema_for(["offset"]))
    assert next(batches).num_rows == 10
    text = r"orders-0, record batch at offset 10 .*more than the limit of 1000.*maxBatchBytes"
    with pytest.raises(CorruptRecords, match=text):
        next(batches)


def test_damaged_control_batch_is_never_passed_over(brokers, config, task):
    """Without the marker nobody knows whether what comes before it was aborted."""
    log = brokers.logs["orders", 0].fill(1)
    marker = NewRecord(b"\0\0\0\0\0\0", b"\0\0\0\1")
    _append(log, marker, attributes=TRANSACTIONAL | 0x20, producer_id=ABORTED_ID)
    _damage(log, 1)
    with pytest.raises(CorruptRecords, match="record batch at offset 10 "):
        read(task((0, 0, 11)), config(), mode=Mode.DROPMALFORMED)


def _claim(log, number, last_offset_delta):
    """Write another end into a batch's header; its CRC shows it."""
    data = bytearray(log.batches[number].data)
    data[23:27] = last_offset_delta.to_bytes(4)
    log.batches[number] = log.batches[number]._replace(data=bytes(data))


@pytest.mark.parametrize("block_bytes", [1 << 20, 1])
def test_a_damaged_batch_that_lies_about_its_end_takes_no_sound_ones_with_it(
    brokers, config, task, block_bytes
):
    """Its last offset is covered by the CRC that is wrong: nobody knows where to go on."""
    log = brokers.logs["orders", 0].fill(4)
    _claim(log, 1, 19)
    limits = config(max_partition_fetch_bytes=block_bytes)
    with pytest.raises(CorruptRecords, match="orders-0, record batch at offset"):
        read(task((0, 0, 40)), limits, mode=Mode.DROPMALFORMED)


def test_batch_that_may_have_been_a_marker_is_never_passed_over(brokers, config, task):
    """The bit that makes a control batch is damaged: it looks like data of a producer."""
    log = brokers.logs["orders", 0].fill(1)
    marker = NewRecord(b"\0\0\0\0\0\0", b"\0\0\0\1")
    _append(log, marker, attributes=TRANSACTIONAL | 0x20, producer_id=ABORTED_ID)
    data = bytearray(log.batches[1].data)
    data[22] ^= 0x20
    log.batches[1] = log.batches[1]._replace(data=bytes(data))
    committed = config(isolation_level="read_committed")
    with pytest.raises(CorruptRecords, match="record batch at offset 10 "):
        read(task((0, 0, 11)), committed, mode=Mode.DROPMALFORMED)
    rows = read(task((0, 0, 11)), config(), mode=Mode.DROPMALFORMED)
    assert rows.num_rows == 10, "to others it is one batch like another"
