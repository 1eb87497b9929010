"""A stream's options."""

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import Latest
from pyspark_kafkaproto.spark.stream.options import parse_stream_options

LEAST = {"kafka.bootstrap.servers": "b-1:9092", "subscribe": "orders"}


def parse(**options):
    return parse_stream_options(LEAST | {name.lower(): text for name, text in options.items()})


def test_defaults_are_sparks():
    options = parse()
    assert options.read.start.limit == Latest()
    assert options.limits.max_offsets is None
    assert options.limits.max_delay_s == 900
    assert options.read.settings.fail_on_data_loss


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("30s", 30), ("500ms", 0.5), ("2 h", 7200), ("250", 0.25)]
)
def test_delays_are_written_as_in_spark(text, seconds):
    assert parse(maxTriggerDelay=text).limits.max_delay_s == seconds


@pytest.mark.parametrize(
    "name",
    ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "offsetRanges"],
)
def test_ends_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}.*a stream has no end"):
        parse(**{name: "latest"})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger"),
        ({"commitGroupId": " "}, "commitGroupId"),
        ({"minPartitions": "9", "maxPartitions": "8"}, "minPartitions"),
        ({"startingOffsets": "committed"}, "kafka.group.id"),
        ({"assign": '{"orders":[0]}'}, "assign / subscribe"),
    ],
)
def test_bad_values_are_named(options, named):
    with pytest.raises(ConfigError, match=named):
        parse(**options)


def test_a_stream_may_start_at_latest_where_its_group_has_committed_nothing():
    """As consumers do with auto.offset.reset=latest; a batch would have nothing to read."""
    given = {"startingOffsets": "committed", "kafka.group.id": "g", "committedFallback": "latest"}
    options = parse(**given)
    assert options.read.fallback == Latest()
    with pytest.raises(ConfigError, match=r"committedFallback.*of a stream, latest"):
        parse(**given | {"committedFallback": "committed"})


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "10MB", "1e6", "", "many"])
def test_bytes_of_a_batch_are_a_number_of_at_least_one(text):
    with pytest.raises(ConfigError, match=r"maxBytesPerTrigger"):
        parse(maxBytesPerTrigger=text)


def test_bytes_of_a_batch_go_with_the_other_limits():
    limits = parse(
        maxBytesPerTrigger="1000000", maxOffsetsPerTrigger="90", minOffsetsPerTrigger="5"
    ).limits
    assert (limits.max_bytes, limits.max_offsets, limits.min_offsets) == (1_000_000, 90, 5)
    assert parse().limits.max_bytes is None


def test_a_checkpoint_of_a_source_is_named(caplog):
    """It is `writeStream` that has one."""
    parse_stream_options(LEAST | {"checkpointlocation": "folder"})
    (said,) = caplog.messages
    assert "'checkpointlocation' is not known to kafkaproto and has no effect" in said


def test_a_delay_of_nothing_is_named(caplog):
    parse_stream_options(LEAST | {"maxtriggerdelay": "1s"})
    assert caplog.messages == [
        "option maxTriggerDelay has no effect: there is no minOffsetsPerTrigger"
    ]
