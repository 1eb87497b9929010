"""Offsets of a stream, as checkpoints hold them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.stream.offsets import (
    Lineage,
    Spoken,
    StreamOffsets,
    from_json,
    lineage_in,
    recalled,
    to_json,
)


def test_they_are_those_of_sparks_own_connector() -> None:
    offsets = {TopicPartition("b", 10): 7, TopicPartition("b", 2): 0, TopicPartition("a", 0): 23}

    text = json.dumps(to_json(offsets), separators=(",", ":"))

    assert text == '{"a":{"0":23},"b":{"2":0,"10":7}}'
    assert from_json(json.loads(text)) == offsets


def test_the_same_offsets_are_the_same_text_whatever_their_order() -> None:
    one = {TopicPartition("a", number): number for number in range(20)}
    other = dict(reversed(one.items()))

    assert json.dumps(to_json(one)) == json.dumps(to_json(other))


def test_which_logs_they_are_of_stands_behind_them() -> None:
    offsets = {TopicPartition("b", at): 7 for at in (2, 10, 9)}
    offsets |= {TopicPartition(topic, 0): 23 for topic in ("a.b-c_d", "old", "c")}
    ids = {"a.b-c_d": bytes(range(16)), "b": b"\xff" * 16, "not read": bytes(16)}
    epochs = {TopicPartition("b", 10): 7, TopicPartition("b", 2): 0, TopicPartition("b", 9): -1}
    epochs[TopicPartition("old", 0)] = 3

    logged = json.loads(json.dumps(to_json(offsets, Lineage(ids, epochs))))

    assert list(logged)[4:] == [
        "a.b-c_d:AAECAwQFBgcICQoLDA0ODw",
        "b:_____________________w:0,-,7",
        "old::3",
    ]
    assert from_json(logged) == offsets
    del ids["not read"], epochs[TopicPartition("b", 9)]
    assert lineage_in(logged) == (ids, epochs)
    assert recalled([logged]) == ((ids, epochs), {item: offsets[item] for item in epochs})


def test_what_reads_like_a_mark_and_is_none_is_passed_over() -> None:
    marks: StreamOffsets = {
        name: {}
        for name in (
            "a:x",
            "a:",
            ":",
            "b",
            "a::",
            "a::x",
            "a::1,2",
            "c::1",
            ":::",
            "a::-1",
            "a::" + "9" * 5000,
        )
    }

    for mark in marks:
        assert lineage_in({"a": {"0": 1}, mark: {}}) == ({}, {})
    assert from_json({"a": {"0": 1}} | marks) == {TopicPartition("a", 0): 1}


def test_the_last_word_on_a_log_counts_and_where_it_was_read_to_by_then() -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    one, other = bytes(16), bytes(range(16))
    first = to_json({a: 1, b: 1}, Lineage({"a": one, "b": one}, {a: 5, b: 5}))

    assert recalled([first, to_json({a: 2, b: 2})]) == (
        ({"a": one, "b": one}, {a: 5, b: 5}),
        {a: 1, b: 1},
    )
    assert recalled([first, to_json({a: 2, b: 2}, Lineage({"a": other}, {b: 6}))]) == (
        ({"a": other, "b": one}, {a: 5, b: 6}),
        {a: 1, b: 2},
    )


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["a", "b.c"]), st.integers(0, 12)),
        st.tuples(st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1)),
    ),
    st.dictionaries(st.sampled_from(["a", "b.c"]), st.binary(min_size=16, max_size=16)),
)
def test_what_is_said_of_logs_is_understood(
    read: dict[TopicPartition, tuple[int, int]], ids: dict[str, bytes]
) -> None:
    offsets = {item: offset for item, (offset, _) in read.items()}
    epochs = {item: epoch for item, (_, epoch) in read.items()}

    logged = to_json(offsets, Lineage(ids, epochs))

    topics = {item.topic for item in read}
    assert from_json(logged) == offsets
    assert lineage_in(logged) == (
        {topic: found for topic, found in ids.items() if topic in topics},
        {item: epoch for item, epoch in epochs.items() if epoch > -1},
    )


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
        {"a:AAECAwQFBgcICQoLDA0ODw": {"0": 3}},
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
