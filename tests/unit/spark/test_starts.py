"""Where reading starts and ends, as Spark's users write it."""

import re

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import (
    Ago,
    Committed,
    Earliest,
    Latest,
    Relative,
    Specific,
    Timestamp,
    check_named,
    parse_end,
    parse_fallback,
    parse_instant,
    parse_partition_times,
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


@pytest.mark.parametrize("text", ["nonsense", "earliest", '{"t":{"0":-2}}'])
def test_an_example_of_an_end_can_be_taken_as_it_stands(text):
    with pytest.raises(ConfigError) as refused:
        parse_end("endingOffsets", text)
    example = re.search(r" or (\{.*\})", str(refused.value))[1]
    assert isinstance(parse_end("endingOffsets", example), Specific)
    assert "expected earliest" not in str(refused.value)


def test_broken_json_is_told_with_where_it_breaks():
    with pytest.raises(ConfigError, match=r"startingOffsets.*no JSON .*line 1 column 13.*expected"):
        parse_start("startingOffsets", '{"a":{"0":1}')


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
    with pytest.raises(ConfigError, match=r"topic 'a', partition '1', 'x'"):
        parse_start("startingOffsets", '{"a":{"0":1,"1":"x"}}')


def test_assigned_partitions_are_read():
    assert parse_partitions("assign", '{"a":[0,1,0],"b":[0]}') == [A0, A1, B0]
    assert parse_partitions("assign", "{}") == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "[]", '{"a":0}', '{"a":["0"]}', '{"a":[-1]}'),
        *('{"a":[1.0]}', '{"a":[true]}', '{"a":null}', '{"a":[0,-1]}'),
    ],
)
def test_bad_partitions_name_option_and_value(text):
    with pytest.raises(ConfigError, match="assign") as caught:
        parse_partitions("assign", text)
    assert caught.value.value == text


@pytest.mark.parametrize("named", [[A0], [A0, A1, B0], [], [B0, A1]])
def test_partitions_that_are_read_must_be_named_and_no_others(named):
    with pytest.raises(ConfigError, match=r"\[COND\].*all partitions.*'a-0', 'a-1'") as caught:
        check_named("startingOffsets", dict.fromkeys(named, 0), [A0, A1], "COND")
    assert caught.value.value == sorted(map(str, named))
    check_named("startingOffsets", {A1: 0, A0: 5}, [A0, A1], "COND")


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("startingOffsets", ", with -2 for earliest where you don't care; read"),
        ("endingOffsets", ", with -1 for latest where you don't care; read"),
        ("startingOffsetsByTimestamp", "and no others; read"),
    ],
)
def test_the_advice_is_one_that_the_option_takes(option, advice):
    with pytest.raises(ConfigError, match=advice):
        check_named(option, {A0: 0}, [A0, A1], "COND")


NOVEMBER_MS = 1_793_491_200_000  # 2026-11-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("-10m", Ago(600_000)),
        (" - 250 MS ", Ago(250)),
        ("-3s", Ago(3_000)),
        ("-2h", Ago(7_200_000)),
        ("-1d", Ago(86_400_000)),
        ("-2w", Ago(1_209_600_000)),
        ("2026-11-01T00:00:00Z", Timestamp(NOVEMBER_MS)),
        ("2026-11-01T01:00:00.250+01:00", Timestamp(NOVEMBER_MS + 250)),
        # A record of the millisecond before is not as late as that.
        ("2026-11-01T00:00:00.000001Z", Timestamp(NOVEMBER_MS + 1)),
        ("2026-11-01T00:00:00.249900Z", Timestamp(NOVEMBER_MS + 250)),
        # As a float it is a millisecond less.
        ("2039-02-01T16:59:24.345Z", Timestamp(2_180_192_364_345)),
        ("latest-100", Relative(-100)),
        ("EARLIEST + 100", Relative(100)),
        ("committed", Committed()),
    ],
)
def test_forms_beyond_sparks_own_are_read_at_both_ends(text, limit):
    assert parse_start("startingOffsets", text) == limit
    assert parse_end("endingOffsets", text) == limit


def test_nothing_from_an_end_is_the_end_itself():
    assert parse_start("startingOffsets", "earliest+0") == Earliest()
    assert parse_end("endingOffsets", "latest-0") == Latest()
    with pytest.raises(ConfigError, match="cannot start at latest"):
        parse_start("startingOffsets", "latest-0")


@pytest.mark.parametrize(
    "text",
    [
        *("10m", "-10", "-m", "-10y", "-1.5h", "latest+5", "earliest-5", "latest-", "latest-x"),
        *(
            "2026-11-01",
            "2026-11-01T00:00:00",
            "0001-01-01T00:00:00+23:00",
            "2026-13-01T00:00:00Z",
            "1969-12-31T00:00:00Z",
        ),
    ],
)
@pytest.mark.parametrize("parse", [parse_start, parse_end])
def test_almost_a_form_is_refused_with_what_is_allowed(parse, text):
    with pytest.raises(ConfigError, match=r"2026-11-01T00:00:00Z|since 1970") as caught:
        parse("someOffsets", text)
    assert (caught.value.option, caught.value.value) == ("someOffsets", text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 100_000,
        '{"a":{"' + "9" * 5000 + '":0}}',
        '{"a":{"0":' + "9" * 5000 + "}}",
        '{"a":{"2147483648":0}}',
    ],
    ids=["nested", "partition", "offset", "no int"],
)
@pytest.mark.parametrize("parse", [parse_start, parse_end])
def test_json_beyond_all_bounds_is_an_error_of_the_option(parse, text):
    with pytest.raises(ConfigError, match="someOffsets"):
        parse("someOffsets", text)


@pytest.mark.parametrize("parse", [parse_partitions, parse_partition_times])
@pytest.mark.parametrize("text", ["", "orders", "latest", "5", "[0]"])
def test_no_word_is_asked_for_where_none_is_taken(parse, text):
    with pytest.raises(ConfigError, match=r"expected JSON, like \{") as caught:
        parse("option", text)
    assert "word" not in str(caught.value)


def test_fallback_is_a_start_or_an_error():
    assert parse_fallback("committedFallback", "error") is None
    assert parse_fallback("committedFallback", "-1h") == Ago(3_600_000)
    for text in ("committed", "latest", "{}", "sooner"):
        with pytest.raises(ConfigError, match="expected error, earliest"):
            parse_fallback("committedFallback", text)


def test_times_are_milliseconds_for_all_or_for_each_partition():
    assert parse_instant("startingTimestamp", " 1000 ") == Timestamp(1000)
    assert parse_partition_times("startingOffsetsByTimestamp", '{"a":{"0":0,"1":7}}') == Timestamp(
        {A0: 0, A1: 7}
    )


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1_000", "now", "9223372036854775808"])
def test_bad_time_names_option_and_value(text):
    with pytest.raises(ConfigError, match="milliseconds since 1970") as caught:
        parse_instant("startingTimestamp", text)
    assert (caught.value.option, caught.value.value) == ("startingTimestamp", text)


@pytest.mark.parametrize("text", ["", "5", '{"a":5}', '{"a":{"0":-1}}', '{"a":{"x":1}}'])
def test_bad_times_per_partition_name_option_and_value(text):
    with pytest.raises(ConfigError, match="milliseconds since 1970") as caught:
        parse_partition_times("endingOffsetsByTimestamp", text)
    assert (caught.value.option, caught.value.value) == ("endingOffsetsByTimestamp", text)


@pytest.mark.parametrize(
    ("parse", "text", "twice"),
    [
        (parse_start, '{"a":{"0":1},"b":{"0":1},"a":{"1":5}}', "'a'"),
        (parse_end, '{"a":{"0":1,"0":5}}', "'0'"),
        (parse_end, '{"a":{"0":1,"00":5}}', "a-0"),
        (parse_partition_times, '{"a":{"0":1},"a":{"1":5}}', "'a'"),
        (parse_partitions, '{"a":[0],"a":[1]}', "'a'"),
    ],
)
def test_what_is_named_twice_is_refused(parse, text, twice):
    """Else the last one counts, and the partitions of the first would not be read."""
    with pytest.raises(ConfigError, match=rf"^option 'x' is .*: {twice} is there twice: name"):
        parse("x", text)
