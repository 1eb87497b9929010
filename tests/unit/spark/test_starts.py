"""Where reading starts and ends, as Spark's users write it."""

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import (
    Earliest,
    Latest,
    Specific,
    limit_of,
    parse_end,
    parse_partitions,
    parse_start,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.mark.parametrize("text", ["earliest", " EARLIEST "])
def test_start_at_earliest(text):
    assert parse_start("startingOffsets", text) == Earliest()


@pytest.mark.parametrize("text", ["latest", "Latest"])
def test_end_at_latest(text):
    assert parse_end("endingOffsets", text) == Latest()


def test_offsets_are_read_and_minus_two_and_one_become_words():
    assert parse_start("startingOffsets", '{"a":{"0":23,"1":-2},"b":{"0":0}}') == Specific(
        {A0: 23, A1: Earliest(), B0: 0}
    )
    assert parse_end("endingOffsets", '{"a":{"0":23,"1":-1}}') == Specific({A0: 23, A1: Latest()})
    largest = 2**63 - 1
    assert parse_end("endingOffsets", f'{{"a":{{"0":{largest}}}}}') == Specific({A0: largest})


@pytest.mark.parametrize("text", ["latest", '{"a":{"0":-1}}'])
def test_batch_cannot_start_at_latest(text):
    with pytest.raises(ConfigError, match=r"startingOffsets.*cannot start at latest"):
        parse_start("startingOffsets", text)


@pytest.mark.parametrize("text", ["earliest", '{"a":{"0":5,"1":-2}}'])
def test_batch_cannot_end_at_earliest(text):
    with pytest.raises(ConfigError, match=r"endingOffsets.*cannot end at earliest"):
        parse_end("endingOffsets", text)


BAD_OFFSETS = [
    *("", "soon", "{", "[]", "5", '"earliest"', "null"),
    *('{"a":5}', '{"a":[0]}', '{"a":null}', '{"a":{"0":"5"}}', '{"a":{"0":1.5}}'),
    *('{"a":{"0":true}}', '{"a":{"0":null}}', '{"a":{"0":-3}}', '{"a":{"x":5}}'),
    *('{"a":{"-1":5}}', '{"a":{"0":9223372036854775808}}', '{"a":{"":5}}'),
]


@pytest.mark.parametrize("text", BAD_OFFSETS)
@pytest.mark.parametrize("parse", [parse_start, parse_end])
def test_bad_offsets_name_option_value_and_an_example(parse, text):
    with pytest.raises(ConfigError) as caught:
        parse("someOffsets", text)
    assert caught.value.option == "someOffsets"
    assert caught.value.value == text
    assert '{"topicA":{"0":23' in caught.value.allowed


def test_bad_offset_is_named_beside_its_partition():
    with pytest.raises(ConfigError, match=r"topic 'a', partition '1', offset 'x'"):
        parse_start("startingOffsets", '{"a":{"0":1,"1":"x"}}')


def test_assigned_partitions_are_read():
    assert parse_partitions("assign", '{"a":[0,1],"b":[0]}') == [A0, A1, B0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "[]", "{}", '{"a":[]}', '{"a":0}', '{"a":["0"]}', '{"a":[-1]}'),
        *('{"a":[0,0]}', '{"a":[1.0]}', '{"a":[true]}', '{"a":null}'),
    ],
)
def test_bad_partitions_name_option_and_value(text):
    with pytest.raises(ConfigError, match="assign") as caught:
        parse_partitions("assign", text)
    assert caught.value.value == text


def test_limit_of_everything_is_the_same_for_each():
    assert limit_of("startingOffsets", Earliest(), [A0, A1]) == {A0: Earliest(), A1: Earliest()}


def test_limit_of_offsets_is_each_ones_own():
    limits = Specific({A0: 5, A1: Latest()})
    assert limit_of("endingOffsets", limits, [A1, A0]) == {A0: 5, A1: Latest()}


@pytest.mark.parametrize("named", [[A0], [A0, A1, B0], [], [B0, A1]])
def test_offsets_must_name_the_partitions_that_are_read_and_no_others(named):
    with pytest.raises(ConfigError, match=r"all partitions.*'a-0', 'a-1'") as caught:
        limit_of("startingOffsets", Specific(dict.fromkeys(named, 0)), [A0, A1])
    assert caught.value.value == sorted(map(str, named))
