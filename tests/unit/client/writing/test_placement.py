"""Rows to partitions: by their own say, by key, or evenly by nobody's."""

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.client.writing import placement
from pyspark_kafkaproto.client.writing.placement import Placement
from pyspark_kafkaproto.records import partition_keys


def placed(places, keys, given=None, row_bytes=10, partitions=4, available=range(4)):
    """The partition of each row."""
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.string())})
    own = None if given is None else pa.array(given, pa.int32())
    columns = write_columns(batch)
    rows = {}
    for partition, indices in places.place(columns, own, row_bytes, partitions, list(available)):
        found = list(range(len(keys)) if indices is None else indices)
        assert found == sorted(found)
        rows |= dict.fromkeys(found, partition)
    return [rows[row] for row in range(len(keys))]


@pytest.mark.parametrize("partitioner", ["murmur2", "consistent_random"])
def test_keys_go_where_the_original_puts_them(partitioner):
    keys = [f"key-{n}" for n in range(100)]
    columns = write_columns(pa.RecordBatch.from_pydict({"key": keys}))
    expected = list(memoryview(partition_keys(columns, 4, partitioner)).cast("B").cast("i"))
    assert placed(Placement(partitioner, 1000), keys) == expected


@pytest.mark.parametrize("partitioner", ["murmur2", "consistent_random"])
def test_rows_without_a_key_stay_together_and_keyed_ones_where_they_belong(partitioner):
    keys = [None if n % 2 else "k" for n in range(100)]
    found = placed(Placement(partitioner, 1000), keys)
    assert len(set(found[0::2])) == 1
    assert len(set(found[1::2])) == 1


@pytest.mark.parametrize("partitions", [10, 5_000])
def test_partitions_that_a_few_rows_do_not_go_to_are_not_looked_at(monkeypatch, partitions):
    """A batch of two rows for a topic of 5,000 took ten times as long as for one of 50."""
    looks = []

    class Looked:
        def __init__(self, buffer):
            self.numbers = memoryview(buffer).cast("B").cast("i")

        def __getitem__(self, at):
            looks.append(at)
            return self.numbers[at]

        def __iter__(self):
            return iter(self.numbers)

    monkeypatch.setattr(placement, "int32s", Looked)
    keys = ["a", "b", "a"]
    assert len(set(placed(Placement("murmur2", 1000), keys, partitions=partitions))) == 2
    assert len(looks) <= 3 * len(keys)


@pytest.mark.slow
def test_runs_are_as_long_as_a_batch_and_partitions_even_in_the_long_run():
    found = placed(Placement("sticky", 1000), ["k"] * 100_000)
    runs = [1]
    for before, now in pairwise(found):
        runs[-1:] = [runs[-1] + 1] if before == now else [runs[-1], 1]
    assert all(run % 100 == 0 for run in runs)
    assert min(Counter(found).values()) > 20_000


@pytest.mark.parametrize("partitioner", ["murmur2", "sticky"])
def test_rows_that_come_together_stay_together(partitioner):
    """They need not be gathered one by one then; the run is a little longer."""
    places = Placement(partitioner, 1000)
    columns = write_columns(pa.RecordBatch.from_pydict({"value": ["v"] * 60}))
    groups = [list(places.place(columns, None, 10, 4, [0, 1, 3])) for _ in range(400)]
    assert all(len(group) == 1 and group[0].indices is None for group in groups)
    partitions = [group[0].partition for group in groups]
    assert partitions[0::2] == partitions[1::2]  # 600 bytes, and 1,200
    assert all(before != now for before, now in pairwise(partitions[::2]))
    assert min(Counter(partitions)[partition] for partition in (0, 1, 3)) > 80


@pytest.mark.parametrize("partitions", [2, 4])
def test_first_run_of_a_writer_may_go_to_any_partition(partitions):
    """Each task has a writer of its own, and small ones have one run."""
    columns = write_columns(pa.RecordBatch.from_pydict({"value": ["v"] * 60}))
    first: Counter[int] = Counter()
    for _ in range(400):
        places = Placement("sticky", 1000)
        groups = places.place(columns, None, 10, partitions, range(partitions))
        first.update(group.partition for group in groups)
    assert min(first[partition] for partition in range(partitions)) > 50


@pytest.mark.parametrize("partitions", [2, 3, 4])
def test_batches_of_two_sizes_in_turn_make_partitions_even(partitions):
    """Of two partitions that have a run by turns the one would have all the large batches."""
    places, found = Placement("sticky", 1000), Counter()
    for rows in (200, 100) * 1000:
        columns = write_columns(pa.RecordBatch.from_pydict({"value": ["v"] * rows}))
        for group in places.place(columns, None, 10, partitions, range(partitions)):
            found[group.partition] += rows
    assert max(found.values()) < 1.2 * 300_000 / partitions


def test_the_only_partition_with_a_leader_has_every_run():
    assert set(placed(Placement("sticky", 100), [None] * 1000, available=[2])) == {2}


def test_runs_go_on_over_calls():
    places = Placement("sticky", 1000)
    assert len({*placed(places, [None] * 40), *placed(places, [None] * 60)}) == 1


def test_round_robin_gives_each_its_turn():
    places = Placement("round_robin", 1000)
    found = placed(places, ["k"] * 10) + placed(places, ["k"] * 10)
    assert [(partition - found[0]) % 4 for partition in found] == [n % 4 for n in range(20)]


@pytest.mark.parametrize("partitioner", ["murmur2", "sticky", "round_robin"])
def test_what_a_row_says_itself_comes_first(partitioner):
    given = [3, None, 2, None]
    found = placed(Placement(partitioner, 1000), [None] * 4, given)
    assert (found[0], found[2]) == (3, 2)
    keyed = placed(Placement("murmur2", 1000), ["a", "b", "c", "d"], given)
    free = placed(Placement("murmur2", 1000), ["a", "b", "c", "d"])
    assert keyed == [3, free[1], 2, free[3]]
    assert placed(Placement(partitioner, 1000), ["a"] * 3, [1, 0, 1]) == [1, 0, 1]


def test_only_rows_without_a_say_take_a_turn():
    given = [0 if n % 2 else None for n in range(400)]
    found = placed(Placement("round_robin", 1000), [None] * 400, given)
    assert Counter(found[0::2]) == dict.fromkeys(range(4), 50)
    assert set(found[1::2]) == {0}


@pytest.mark.parametrize("with_given", [True, False])
def test_only_rows_without_a_say_fill_a_run(with_given):
    """Runs of 20 rows of nobody's, however many of others lie between."""
    keys = ["k" if n % 4 else None for n in range(4000)]
    given = [3 if n % 4 == 1 else None for n in range(4000)] if with_given else None
    found = placed(Placement("murmur2", 200), keys, given)[0::4]
    runs = [found[start : start + 20] for start in range(0, 1000, 20)]
    assert all(len(set(run)) == 1 for run in runs)
    assert set(found) == set(range(4))


def test_keys_say_what_rows_do_not_say_themselves():
    found = placed(Placement("murmur2", 1000), ["k"] * 4, [1, None, 2, None])
    (by_key,) = set(placed(Placement("murmur2", 1000), ["k"]))
    assert found == [1, by_key, 2, by_key]


def test_a_slice_of_what_rows_say_is_placed_as_it_says():
    batch = pa.RecordBatch.from_pydict({"key": pa.array([None] * 3, pa.string())})
    own = pa.array([9, 1, None, 3, 9], pa.int32()).slice(1, 3)
    groups = Placement("sticky", 1000).place(write_columns(batch), own, 10, 4, [2])
    assert {group.partition: list(group.indices) for group in groups} == {1: [0], 2: [1], 3: [2]}


@pytest.mark.parametrize("partitioner", ["sticky", "round_robin", "murmur2"])
def test_partitions_without_a_leader_are_left_alone(partitioner):
    found = placed(Placement(partitioner, 100), [None] * 1000, available=[1, 3])
    assert set(found) == {1, 3}


def test_many_writers_do_not_begin_with_the_same_partition():
    firsts = {placed(Placement("round_robin", 10), [None])[0] for _ in range(200)}
    assert firsts == {0, 1, 2, 3}


def test_rows_that_hold_nothing_are_spread_too():
    """A column of the type null has no bytes: they would all be of one run that never ends."""
    batch = pa.RecordBatch.from_pydict({"value": pa.nulls(50)})
    columns, places, found = write_columns(batch), Placement("murmur2", 100), Counter()
    for _ in range(200):
        groups = places.place(columns, None, batch.nbytes // batch.num_rows, 4, list(range(4)))
        found.update(group.partition for group in groups)
    assert len(found) == 4
