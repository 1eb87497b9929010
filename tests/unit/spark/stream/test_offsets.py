"""Offsets of a stream, as checkpoints hold them."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.stream.offsets import from_json, to_json


def test_they_are_those_of_sparks_own_connector() -> None:
    offsets = {TopicPartition("b", 10): 7, TopicPartition("b", 2): 0, TopicPartition("a", 0): 23}

    text = json.dumps(to_json(offsets), separators=(",", ":"))

    assert text == '{"a":{"0":23},"b":{"2":0,"10":7}}'
    assert from_json(json.loads(text)) == offsets


def test_the_same_offsets_are_the_same_text_whatever_their_order() -> None:
    one = {TopicPartition("a", number): number for number in range(20)}
    other = dict(reversed(one.items()))

    assert json.dumps(to_json(one)) == json.dumps(to_json(other))


@pytest.mark.parametrize(
    "logged", [{"a": 3}, {"a": {"x": 3}}, {"a": {"0": "3"}}, {"a": {"0": -1}}, {"a": {"0": True}}]
)
def test_what_another_source_logged_is_refused(logged: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"checkpointLocation.*another query"):
        from_json(logged)
