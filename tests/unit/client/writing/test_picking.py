"""Rows by the topics that they name, with the numbers that they had."""

from array import array

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client.writing.batches import Rows
from pyspark_kafkaproto.client.writing.picking import Picked, by_topic
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


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_rows_keep_their_order_and_numbers_in_each_topic(kind):
    picked = list(by_topic(whole(["a", None, "b", "a", None], first=100, kind=kind)).parts)
    assert {(one.topic, one.fault and one.fault[:10]): numbers_of(one) for one in picked} == {
        ("a", None): [100, 103],
        ("b", None): [102],
        (None, "null topic"): [101, 104],
    }


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
    batch = pa.RecordBatch.from_pydict({"value": ["x"], "topic": [1]})
    with pytest.raises(ConfigError, match="topic has to be a string"):
        by_topic(Picked(None, batch, Rows(0), None))
    with pytest.raises(ConfigError, match="no column `topic`"):
        by_topic(Picked(None, batch.select(["value"]), Rows(0), None))
