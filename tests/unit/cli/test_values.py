"""Moments, spans, pairs, formats: what people write, and what they are told when it is wrong."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pytest

from pyspark_kafkaproto.cli.moments import parse_span, parse_time, show_time
from pyspark_kafkaproto.cli.record_format import make_render
from pyspark_kafkaproto.cli.values import (
    find_partitions,
    parse_ids,
    parse_pairs,
    parse_partition_offsets,
    parse_topic_offsets,
)
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

RECORD = {
    "topic": "orders",
    "partition": 1,
    "offset": 7,
    "timestamp": 1_700_000_000_123_000,
    "key": b"k",
    "value": b"\xff",
    "headers": [{"key": "h", "value": b"v"}, {"key": "n", "value": None}],
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250us", 0.00025),
        ("500ms", 0.5),
        ("90s", 90),
        ("1.5m", 90),
        ("2h", 7200),
        ("1w", 604800),
    ],
)
def test_spans(text, seconds):
    assert parse_span("--watch", text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "1y", "99999w", f"{'9' * 400}s"])
def test_wrong_spans_name_the_option(text):
    with pytest.raises(ConfigError, match=r"--watch.*90s, 10m"):
        parse_span("--watch", text)


def test_times(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert parse_time("--at", "-10m") == 400_000
    assert parse_time("--at", "-20m") == 0  # the clock says 1970: no record is older
    assert parse_time("--at", "1700000000123") == 1_700_000_000_123
    assert parse_time("--at", "2026-11-21T08:00:00+01:00") == 1_795_244_400_000
    assert parse_time("--at", "2026-11-21T08:00:00.0001+01:00") == 1_795_244_400_001
    local = int(datetime(2026, 11, 21, 8).timestamp() * 1000)
    assert parse_time("--at", "2026-11-21T08:00") == local
    assert show_time(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert show_time(-1) == "1969-12-31T23:59:59.999Z"
    assert show_time(253_402_300_800_000) == "253402300800000"  # the year 10,000
    for wrong in ("yesterday", "-10", "2026-13-01", "0001-01-01", "9" * 19, f"-{'9' * 400}d"):
        with pytest.raises(ConfigError, match="--at"):
            parse_time("--at", wrong)


def test_a_date_before_1970_names_the_option():
    """Brokers take a time below 0 for another question; the error was about a `timestamp`."""
    with pytest.raises(ConfigError, match=r"'--at' is '1969-12-31T23:59Z': .*from 1970 on"):
        parse_time("--at", "1969-12-31T23:59Z")


def test_a_span_back_is_shown_as_it_was_given():
    with pytest.raises(ConfigError, match=r"'--at' is '-10': expected a span such as -90s"):
        parse_time("--at", "-10")


def test_pairs_and_offsets():
    assert parse_pairs("-c", ["a=1", "b=c=d", "e="]) == {"a": "1", "b": "c=d", "e": ""}
    with pytest.raises(ConfigError, match="each KEY once") as caught:
        parse_pairs("--set", ["ssl.key.password=hunter1", "ssl.key.password=hunter2"])
    assert "hunter" not in str(caught.value)
    assert parse_partition_offsets("--x", "t", ["0=5"]) == {TopicPartition("t", 0): 5}
    assert parse_topic_offsets("--to", ["a:b:3=5"]) == {TopicPartition("a:b", 3): 5}


@pytest.mark.parametrize("texts", [["a"], ["=1"], ["a=1", "a=2"]])
def test_wrong_pairs(texts):
    with pytest.raises(ConfigError, match="each KEY once"):
        parse_pairs("-c", texts)


@pytest.mark.parametrize(
    ("parse", "expected"),
    [
        (partial(parse_partition_offsets, "--delete-records", "t"), "PARTITION=OFFSET"),
        (partial(parse_topic_offsets, "--to"), "TOPIC:PARTITION=OFFSET"),
    ],
)
def test_what_is_no_pair_is_told_by_the_words_of_the_help(parse, expected):
    key, _, _ = expected.partition("=")
    with pytest.raises(ConfigError, match=f"expected {expected}, each {key} once"):
        parse(["t:0"])


@pytest.mark.parametrize("text", ["t:0=x", "t:0=-1", "t:x=1", "0=1", "t:0=99999999999999999999"])
def test_wrong_offsets(text):
    with pytest.raises(ConfigError, match="--to"):
        parse_topic_offsets("--to", [text])


def test_json_of_a_record_tells_bytes_from_text():
    assert make_render("json")(RECORD) == (
        b'{"topic": "orders", "partition": 1, "offset": 7, '
        b'"timestamp": "2023-11-14T22:13:20.123Z", "key": "k", "value_base64": "/w==", '
        b'"headers": [{"key": "h", "value": "v"}, {"key": "n", "value": null}]}\n'
    )


def test_raw_and_templates_keep_bytes():
    assert make_render("raw")(RECORD) == b"\xff\n"
    assert make_render("raw")(RECORD | {"value": None}) == b"\n"
    template = make_render(
        r"{topic}-{partition}@{offset}\t{key}: {value} {{{headers}}} {timestamp}"
    )
    assert template(RECORD) == b"orders-1@7\tk: \xff {h=v,n=} 2023-11-14T22:13:20.123Z\n"
    assert make_render("ü\udcff{offset}")(RECORD) == b"\xc3\xbc\xff7\n"  # as a shell gave it


def test_timestamp_beyond_pythons_dates_is_a_number():
    assert (
        make_render("{timestamp}")(RECORD | {"timestamp": 2**62}) == f"{2**62 // 1000}\n".encode()
    )


def test_a_record_without_a_timestamp_has_none():
    """Older than Kafka 0.10; it was shown as of the last millisecond of 1969."""
    oldest = RECORD | {"timestamp": -1000}
    assert b'"timestamp": null' in make_render("json")(oldest)
    assert make_render("{timestamp}@{offset}")(oldest) == b"@7\n"
    assert b'"1969-12-31T23:59:59.998Z"' in make_render("json")(RECORD | {"timestamp": -2000})


@pytest.mark.parametrize("text", ["", "plain", "{offest}", "{", "{0}", "{key!r}", "{key:>9}"])
def test_wrong_formats_say_which_fields_there_are(text):
    with pytest.raises(ConfigError, match=r"--format.*\{topic\}, \{partition\}"):
        make_render(text)


@pytest.mark.parametrize("number", ["2147483648", "9" * 5000])
def test_numbers_that_no_broker_and_no_partition_has_are_refused(number):
    for parse, text in (
        (parse_ids, f"1,{number}"),
        (lambda option, text: parse_topic_offsets(option, [text]), f"a:{number}=5"),
        (lambda option, text: find_partitions(None, option, [text]), f"a:0,{number}"),
    ):
        with pytest.raises(ConfigError, match="--it"):
            parse("--it", text)
