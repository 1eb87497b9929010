"""Offsets of a stream, as checkpoints hold them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.stream.offsets import Spoken, from_json, to_json


def test_they_are_those_of_sparks_own_connector() -> None:
    offsets = {TopicPartition("b", 10): 7, TopicPartition("b", 2): 0, TopicPartition("a", 0): 23}

    text = json.dumps(to_json(offsets), separators=(",", ":"))

    assert text == '{"a":{"0":23},"b":{"2":0,"10":7}}'
    assert from_json(json.loads(text)) == offsets


def test_the_same_offsets_are_the_same_text_whatever_their_order() -> None:
    one = {TopicPartition("a", number): number for number in range(20)}
    other = dict(reversed(one.items()))

    assert json.dumps(to_json(one)) == json.dumps(to_json(other))


def test_offsets_and_partitions_may_be_as_large_as_kafkas() -> None:
    largest = {TopicPartition("a", 2**31 - 1): 2**63 - 1}

    assert from_json(to_json(largest)) == largest


@pytest.mark.parametrize(
    "logged",
    [
        7,
        "7",
        None,
        ["a"],
        {"a": 3},
        {"a": [3]},
        {"a": {"x": 3}},
        {"a": {"0": "3"}},
        {"a": {"0": -1}},
        {"a": {"0": True}},
        {"a": {"0": 2**63}},
        {"a": {str(2**31): 3}},
        {"a": {"9" * 5000: 3}},
    ],
    ids=lambda logged: str(logged)[:20],
)
def test_what_another_source_logged_is_refused(logged: object) -> None:
    with pytest.raises(ConfigError, match=r"checkpointLocation.*another query"):
        from_json(logged)
    with pytest.raises(ConfigError, match=r"checkpointLocation.*another query"):
        Spoken().from_json(logged)


_few = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 2)), st.integers(0, 2)
)


@given(st.lists(st.tuples(st.booleans(), _few), max_size=20))
def test_what_is_kept_between_two_words_changes_none_of_them(
    said: list[tuple[bool, dict[TopicPartition, int]]],
) -> None:
    spoken = Spoken()
    for is_heard, offsets in said:
        if is_heard:
            assert spoken.from_json(json.loads(json.dumps(to_json(offsets)))) == offsets
        else:
            assert json.dumps(spoken.to_json(offsets)) == json.dumps(to_json(offsets))


def test_what_was_heard_last_is_said_in_the_same_words() -> None:
    spoken = Spoken()
    logged = {"b": {"1": 7, "0": 3}, "a": {"0": 1}}  # by something with another order

    at = spoken.from_json(logged)

    assert at == from_json(logged)
    assert spoken.from_json(json.loads(json.dumps(logged))) is at
    assert spoken.to_json(dict(at)) is logged


def test_what_was_refused_is_refused_again() -> None:
    spoken = Spoken()
    for _ in range(2):
        with pytest.raises(ConfigError):
            spoken.from_json({"a": 3})
    assert spoken.from_json({}) == {}
