"""Rows by the topics that they name, with the numbers that they had."""

from array import array

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client.writing.batches import Rows
from pyspark_kafkaproto.client.writing.picking import Picked, by_topic, size_bytes_of
from pyspark_kafkaproto.errors import ConfigError


def whole(topics, first=0, kind=None):
    """Rows whose values are their numbers."""
    numbers = pa.array([str(first + n) for n in range(len(topics))])
    column = pa.array(topics, kind or pa.string())
    batch = pa.RecordBatch.from_arrays([numbers, column], ["value", "topic"])
    return Picked(None, batch, Rows(first), None)


def numbers_of(picked):
    """By the rows themselves, as they say."""
    assert picked.batch.column("value").to_pylist() == [
        str(picked.rows.number(row)) for row in range(picked.batch.num_rows)
    ]
    return [picked.rows.number(row) for row in range(picked.batch.num_rows)]


class Views:
    """A batch of string views as pyarrow up to 22 has it: nobody measures its rows."""

    @property
    def nbytes(self):
        raise pa.ArrowTypeError("Extracting byte ranges not supported for type string_view")

    def get_total_buffer_size(self):
        return 52_000


def test_views_are_measured_by_their_buffers_where_arrow_cannot_do_better():
    assert size_bytes_of(Views()) == 52_000
    batch = pa.RecordBatch.from_arrays([pa.array(["a" * 100])], ["value"])
    assert size_bytes_of(batch.slice(0, 0)) < 100 <= size_bytes_of(batch)


KINDS = [pa.string(), pa.large_string(), pa.string_view()]
KINDS += [pa.dictionary(pa.int8(), kind) for kind in (pa.string(), pa.large_string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_keep_their_order_and_numbers_in_each_topic(kind):
    picked = list(by_topic(whole(["a", None, "b", "a", None], first=100, kind=kind)).parts)
    assert {(one.topic, one.fault and one.fault[:10]): numbers_of(one) for one in picked} == {
        ("a", None): [100, 103],
        ("b", None): [102],
        (None, "null topic"): [101, 104],
    }


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_of_a_slice_keep_theirs_too(kind):
    given = whole([None, "b", "a", "a"], kind=kind)
    picked = list(by_topic(given._replace(batch=given.batch.slice(2), rows=Rows(2))).parts)
    assert [(one.topic, numbers_of(one)) for one in picked] == [("a", [2, 3])]


def test_a_dictionary_may_have_a_topic_twice_and_null():
    names = pa.array(["a", None, "a"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.uint64()), names)
    for count, expected in (1, [("a", [0])]), (4, [("a", [0, 2]), (None, [1, 3])]):
        batch = whole(["x"] * count).batch.set_column(1, "topic", column.slice(0, count))
        picked = by_topic(Picked(None, batch, Rows(0), None)).parts
        assert [(one.topic, numbers_of(one)) for one in picked] == expected


def run_ends(values):
    """An array of the values, twice each."""
    ends = pa.array(range(2, 2 * len(values) + 2, 2), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(values))


@pytest.mark.parametrize("name", ["value", "key", "partition", "at"])
def test_a_column_of_which_arrow_picks_no_rows_is_named(name):
    columns = {"value": ["0", "1"], "topic": ["a", "b"], name: run_ends([1])}
    given = Picked(None, pa.RecordBatch.from_pydict(columns), Rows(0), "at")
    with pytest.raises(ConfigError, match=f"'{name} run_end_encoded<.*rows of {name} cannot be"):
        list(by_topic(given).parts)


def test_columns_that_do_not_count_are_not_taken():
    columns = {"value": ["0", "1"], "topic": run_ends(["a"]), "other": run_ends([1])}
    given = Picked("orders", pa.RecordBatch.from_pydict(columns), Rows(0), None)
    assert numbers_of(given.taken(memoryview(array("i", [1])))) == [1]


def test_what_is_taken_of_what_was_taken_keeps_its_numbers():
    taken = whole(["a"] * 9, first=100).taken(memoryview(array("i", [1, 4, 7])))
    assert numbers_of(taken.taken(memoryview(array("i", [2, 0])))) == [107, 101]


def test_rows_of_one_topic_are_not_copied():
    given = whole(["a"] * 3)
    names, (picked,) = by_topic(given)
    assert names == ["a"]
    assert picked == given._replace(topic="a")
    assert picked.batch is given.batch


def test_rows_have_to_name_a_topic_as_text():
    columns = [[1], [b"x"], pa.nulls(1), pa.array([1]).dictionary_encode(), run_ends(["a"])[:1]]
    for column in columns:
        batch = pa.RecordBatch.from_pydict({"value": ["x"], "topic": column})
        with pytest.raises(ConfigError, match=r"'topic .*topic has to be a string"):
            by_topic(Picked(None, batch, Rows(0), None))
    with pytest.raises(ConfigError, match="no column `topic`"):
        by_topic(Picked(None, batch.select(["value"]), Rows(0), None))
