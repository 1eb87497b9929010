"""Small Arrow batches put together: no row is lost, doubled or moved, and each has its time."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client.writing import coalescing
from pyspark_kafkaproto.client.writing.coalescing import Coalescing

NOW_NS = 1_700_000_000_123_456_789
NOW_US = NOW_NS // 1000
KINDS = {
    "value alone": (["value"], None),
    "keys": (["key", "value"], None),
    "own times": (["value", "timestamp"], "timestamp"),
    "times that do not count": (["value", "timestamp"], None),
}


@pytest.fixture
def clock(monkeypatch):
    """What the clocks say: seconds, which a test may set."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(coalescing, "_MOST_S", 0.1)
    monkeypatch.setattr(coalescing.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(coalescing.time, "time_ns", lambda: NOW_NS)
    return Clock


def batch_of(names, first, rows):
    """A batch whose rows are numbered, and of whose own times every other one is missing."""
    numbers = range(first, first + rows)
    times = [number if number % 2 else None for number in numbers]
    columns = {
        "key": pa.array([f"k{number}" for number in numbers]),
        "value": pa.array([f"{number}" for number in numbers]),
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def rows_of(parts):
    """Value and key of each row, and its time in microseconds, None for that of writing."""
    found = []
    for batch, timestamp_column in parts:
        columns = [batch.column("value").to_pylist()]
        columns += [batch.column("key").to_pylist() if "key" in batch.schema.names else []]
        micros = (
            batch.column(timestamp_column).cast(pa.int64()) if timestamp_column else pa.nulls(0)
        )
        for row, value in enumerate(columns[0]):
            key = columns[1][row] if columns[1] else None
            found.append((value, key, micros[row].as_py() if len(micros) else None))
    return found


def expected_row(kind, number):
    names, timestamp_column = KINDS[kind]
    own = number if timestamp_column and number % 2 else None
    return f"{number}", f"k{number}" if "key" in names else None, own


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*KINDS]),
            st.integers(0, 40),
            st.integers(0, 6),  # partitions that the part before went to
            st.floats(0, 0.2),
            st.booleans(),
        ),
        max_size=20,
    ),
    st.sampled_from([10, 200, 10_000]),
)
def test_rows_come_out_once_in_their_order_and_with_their_times(steps, batch_bytes):
    with pytest.MonkeyPatch.context() as patch:
        now = 100.0
        patch.setattr(coalescing, "_MOST_S", 0.1)
        patch.setattr(coalescing, "_ROWS_EACH", 8)
        patch.setattr(coalescing, "_MOST_BYTES", 1000)
        patch.setattr(coalescing.time, "monotonic", lambda: now)
        patch.setattr(coalescing.time, "time_ns", lambda: NOW_NS)
        held = Coalescing(1.0, batch_bytes, 1 << 20)
        expected, found, number = [], [], 0
        for kind, rows, spread, pause_s, is_end in steps:
            now += pause_s
            held.note_spread(spread)
            names, timestamp_column = KINDS[kind]
            found += held.add(batch_of(names, number, rows), timestamp_column)
            expected += [expected_row(kind, number + row) for row in range(rows)]
            number += rows
            if is_end:
                found += held.take()
        found += held.take()
    rows = rows_of(found)
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    for (_, _, time_us), (_, _, own) in zip(rows, expected, strict=True):
        assert time_us == own or (own is None and time_us == NOW_US)
    assert held.take() == []


def test_rows_wait_until_there_are_enough_for_each_partition(clock):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    assert len(held.add(batch_of(["value"], 0, 1000), None)) == 1  # nobody knows where they go
    held.note_spread(10)
    sizes = []
    for turn in range(12):
        clock.now += 0.001
        sizes.append([part.num_rows for part, _ in held.add(batch_of(["value"], turn, 1000), None)])
    assert sizes == [[], [], [], [], [], [6000]] * 2  # 10 times 512 are needed


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 100])
def test_few_partitions_let_batches_through_as_they_are(clock, rows):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    for _ in range(3):
        batch = batch_of(["value"], 0, 512 * rows)
        ((same, timestamp_column),) = held.add(batch, None)
        assert same is batch
        assert timestamp_column is None
        held.note_spread(rows)


@pytest.mark.parametrize(
    ("linger_s", "batch_bytes", "pause_s"),
    [(0.0, 1 << 20, 0.001), (1.0, 1, 0.001), (1.0, 1 << 20, 0.2)],
)
def test_nothing_waits_with_linger_0_or_full_batches_or_for_long(
    clock, linger_s, batch_bytes, pause_s
):
    held = Coalescing(linger_s, batch_bytes, 1 << 30)
    for _ in range(3):
        clock.now += pause_s
        assert len(held.add(batch_of(["value"], 0, 10), None)) == 1
        held.note_spread(10)


def test_what_is_held_waits_no_longer_than_a_while(clock):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    held.add(batch_of(["value"], 0, 1), None)
    held.note_spread(10)
    sizes = []
    for turn in range(8):
        clock.now += 0.03
        sizes.append([part.num_rows for part, _ in held.add(batch_of(["value"], turn, 1), None)])
    assert sizes == [[], [], [], [], [5], [], [], []]


def test_large_batches_are_not_copied(clock):
    held = Coalescing(1.0, 1 << 30, 4000)
    held.add(batch_of(["value"], 0, 1), None)
    held.note_spread(10)
    assert held.add(batch_of(["value"], 0, 1), None) == []
    large = batch_of(["value"], 0, 500)
    (_, first), (same, own) = held.add(large, None)
    assert same is large
    assert own is None
    assert first is not None


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_row_without_a_time_gets_the_one_at_which_it_came(clock, unit):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    times = pa.array([None, 7], pa.timestamp(unit))
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), times], ["value", "at"])
    held.add(batch, "at")
    held.note_spread(10)
    assert held.add(batch, "at") == []
    ((merged, timestamp_column),) = held.take()
    assert timestamp_column == "at"
    in_ns = {"ms": 10**6, "us": 10**3, "ns": 1}[unit]
    assert merged.column("at").cast(pa.int64()).to_pylist() == [NOW_NS // 1000 * 1000 // in_ns, 7]


def test_what_is_forgotten_does_not_come_back(clock):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    held.add(batch_of(["value"], 0, 1), None)
    held.note_spread(10)
    assert held.add(batch_of(["value"], 1, 1), None) == []
    held.start_over()
    assert [part.num_rows for part, _ in held.add(batch_of(["value"], 2, 1), None)] == [1]


def headers_of(kind):
    pair = pa.struct([("key", kind), ("value", pa.binary())])
    return pa.array([[{"key": "k", "value": b"v"}]] * 3, pa.list_(pair))


TEXT = pa.array(["a", "b", "c"])
CODES = TEXT.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))


@pytest.mark.parametrize(
    ("columns", "timestamp_column"),
    [
        # The codes of dictionaries may not be enough for those of several.
        ({"value": CODES}, None),
        ({"value": TEXT, "key": CODES}, None),
        ({"value": TEXT, "topic": CODES}, None),
        ({"value": TEXT, "headers": headers_of(pa.dictionary(pa.int8(), pa.string()))}, None),
        # What has been said to be held would be all that it is a view of.
        ({"value": TEXT.cast(pa.string_view())}, None),
        # Of the time of now they would keep the second.
        ({"value": TEXT, "at": pa.array([1, None, 3], pa.timestamp("s"))}, "at"),
        ({"value": TEXT, "at": pa.nulls(3)}, "at"),
        # Errors tell of all the columns, and at once.
        ({"value": TEXT, "att": pa.array([1, 2, 3], pa.timestamp("s"))}, "at"),
        ({"value": pa.array([1, 2, 3])}, None),
        ({"value": TEXT, "key": pa.array([1, 2, 3])}, None),
        ({"value": TEXT, "headers": TEXT}, None),
        ({"value": TEXT, "partition": pa.nulls(3, pa.timestamp("us"))}, "partition"),
    ],
)
def test_columns_of_which_several_cannot_be_put_together_go_through(
    clock, columns, timestamp_column
):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    held.add(batch_of(["value"], 0, 1), None)
    held.note_spread(10)
    assert held.add(batch_of(["value"], 1, 2), None) == []
    batch = pa.RecordBatch.from_pydict(columns)
    (before, _), (same, own) = held.add(batch, timestamp_column)
    assert before.num_rows == 2
    assert same is batch
    assert own == timestamp_column


@pytest.mark.parametrize(
    "columns",
    [
        {"value": pa.array([b"abc"] * 3, pa.binary(3)), "key": pa.nulls(3)},
        {"value": TEXT.cast(pa.large_string()), "headers": headers_of(pa.large_string())},
        {"value": TEXT, "headers": pa.nulls(3), "other": CODES, "partition": pa.nulls(3)},
        {"value": TEXT, "partition": pa.array([1, 2, 3], pa.uint64()), "topic": TEXT},
        {"value": TEXT, "": pa.array([1, 2, 3], pa.timestamp("s"))},
    ],
)
def test_all_other_columns_are_put_together(clock, columns):
    held = Coalescing(1.0, 1 << 20, 1 << 30)
    held.add(batch_of(["value"], 0, 1), None)
    held.note_spread(10)
    batch = pa.RecordBatch.from_pydict(columns)
    timestamp_column = "" if "" in columns else None
    assert held.add(batch, timestamp_column) == []
    assert held.add(batch, timestamp_column) == []
    ((whole, own),) = held.take()
    assert own in whole.schema.names
    names = [name for name in columns if name != "other"]
    assert whole.select(names).slice(3).to_pydict() == batch.select(names).to_pydict()
