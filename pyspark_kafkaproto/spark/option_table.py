"""The table of the source's options: name, how its text is read, default, meaning, difference.

One row per option and use. docs/options.md is made of it (`tools/generate_options.py`), so what a
row says is what users read. Values are read here, what they mean together stands in `options`.
Pure: no broker, no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

from pyspark_kafkaproto.client import Mode, ReadSettings
from pyspark_kafkaproto.cluster.names import topic_pattern
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.range_text import parse_ranges
from pyspark_kafkaproto.spark.starts import (
    Earliest,
    Latest,
    parse_end,
    parse_fallback,
    parse_instant,
    parse_limit,
    parse_partition_times,
    parse_partitions,
    parse_start,
    parse_stream_fallback,
    read_digits,
)

_DURATION = re.compile(r"([0-9]{1,15})\s*(us|ms|s|m|min|h|d)?", re.ASCII)
_UNITS_S = {"us": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Use(Flag):
    """What an option belongs to."""

    BATCH = auto()
    STREAM = auto()
    WRITE = auto()
    READ = BATCH | STREAM


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: as documented; Spark hands names over in lower case.
        read: its text as a value; called with name and text, raises ConfigError.
        default: the value when it is not given.
        meaning: what it does.
        uses: whether it belongs to batch reads, streams, writes. A name may have a row per use
            where it means something else.
        differs: how it differs from Spark's own connector; empty where it does not.
        is_ours: whether Spark's own connector does not have it.
    """

    name: str
    read: Callable[[str, str], Any]
    default: Any
    meaning: str
    uses: Use = Use.READ
    differs: str = ""
    is_ours: bool = False


def read_boolean(name: str, text: str) -> bool:
    """`true` or `false`, in any case."""
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise ConfigError(name, text, "expected true or false")
    return word == "true"


def read_count(name: str, text: str) -> int:
    """A whole number, 1 or more."""
    number = read_digits(text.strip())
    if number is None or not 1 <= number < 2**63:
        raise ConfigError(name, text, "expected a whole number, 1 or more")
    return number


def read_milliseconds(least: int) -> Callable[[str, str], float]:
    """Reads milliseconds, `least` or more, as seconds."""

    def read(name: str, text: str) -> float:
        number = read_digits(text.strip())
        if number is None or not least <= number < 2**31:
            raise ConfigError(name, text, f"expected milliseconds, from {least} to 2147483647")
        return number / 1000

    return read


def read_mode(name: str, text: str) -> Mode:
    """`FAILFAST`, `DROPMALFORMED` or `PERMISSIVE`, in any case."""
    try:
        return Mode(text.strip().upper())
    except ValueError:
        raise ConfigError(
            name, text, f"expected {', '.join(mode.value for mode in Mode)}"
        ) from None


def read_duration(name: str, text: str) -> float:
    """`15m`, `30s`, `500ms`, as seconds; a bare number is milliseconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(name, text, "expected a time like 15m, 30s or 500ms")
    return int(match[1]) * _UNITS_S[match[2] or "ms"]


def read_text(name: str, text: str) -> str:
    """The text as it is."""
    del name
    return text


def read_name(name: str, text: str) -> str:
    """A name: not nothing."""
    if not text.strip():
        raise ConfigError(name, text, "expected a name")
    return text.strip()


def _topics(name: str, text: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not topics:
        raise ConfigError(name, text, "expected the names of topics: topicA,topicB")
    return topics


def _strategy(name: str, text: str) -> str:
    word = text.strip().lower()
    if word not in {"error", "latest"}:
        raise ConfigError(name, text, "expected error or latest")
    return word


def _on_invalid(name: str, text: str) -> str:
    word = text.strip().lower()
    if word not in {"fail", "deadletter"}:
        raise ConfigError(name, text, "expected fail or deadletter")
    return word


OPTIONS: tuple[Option, ...] = (
    Option("subscribe", _topics, None, "Topics to read, separated by commas."),
    Option(
        "subscribePattern",
        topic_pattern,
        None,
        "A regular expression; topics are read whose names contain a match.",
        differs="Python's regular expressions instead of Java's.",
    ),
    Option(
        "assign",
        parse_partitions,
        None,
        'Partitions to read: `{"topicA":[0,1]}`.',
        differs="A partition that does not exist fails the query; Spark's own leaves it out.",
    ),
    Option(
        "offsetRanges",
        parse_ranges,
        None,
        "Exactly what to read: `[[topic, partition, start, stop], …]`, as `ranges_json` writes it; "
        "takes the place of a selection and of every start and end.",
        uses=Use.BATCH,
        is_ours=True,
    ),
    Option(
        "startingOffsets",
        parse_start,
        Earliest(),
        'Where to start: `earliest`; offsets as JSON, `{"topicA":{"0":23,"1":-2}}` (-2: earliest); '
        "`-10m` (ms, s, m, h, d, w: so long ago); `2026-11-01T00:00:00Z`; `latest-100`, "
        "`earliest+100` (so many offsets, per partition); `committed` (by `kafka.group.id`).",
        uses=Use.BATCH,
        differs="Spark's own has `earliest` and JSON only. Starts other than these are resolved "
        "once per `load()`.",
    ),
    Option(
        "startingOffsets",
        parse_limit,
        Latest(),
        "Where a new query starts, in any form of a batch's, or `latest`; a query that "
        "was restarted goes on where its checkpoint says. Partitions that are added while it runs "
        "are read from their first offset.",
        uses=Use.STREAM,
        differs="Spark's own has `earliest`, `latest` and JSON only. The start is logged as an "
        "empty batch 0, so that a restart cannot move it; not so under Trigger.Once, which reads "
        "at once.",
    ),
    Option(
        "startingTimestamp",
        parse_instant,
        None,
        "Start at the first record of this timestamp or later, in every partition; milliseconds "
        "since 1970. Comes before startingOffsetsByTimestamp and startingOffsets.",
        differs="Negative numbers are refused; Spark's own takes -1 and -2 for latest and earliest "
        "by accident.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        parse_partition_times,
        None,
        'The same per partition: `{"topicA":{"0":1000,"1":2000}}`. Comes before startingOffsets.',
        differs="As startingTimestamp.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        _strategy,
        None,
        "When no record is so late: `error` fails, `latest` starts at the end of the partition. By "
        "default `error` for startingTimestamp and startingOffsetsByTimestamp, and `latest` for "
        "a time in startingOffsets.",
    ),
    Option(
        "committedFallback",
        parse_fallback,
        Earliest(),
        "Where `startingOffsets=committed` starts in partitions that the group has committed "
        "nothing for: any start of a batch but JSON and committed, or `error`.",
        uses=Use.BATCH,
        is_ours=True,
    ),
    Option(
        "committedFallback",
        parse_stream_fallback,
        Earliest(),
        "The same for a new query; `latest`, too.",
        uses=Use.STREAM,
        is_ours=True,
    ),
    Option(
        "endingOffsets",
        parse_end,
        Latest(),
        'Where to end: `latest`; offsets as JSON, `{"topicA":{"0":50,"1":-1}}` (-1: latest); or '
        "any of the other forms of startingOffsets. With `committed`, partitions that the group "
        "has committed nothing for are left out.",
        uses=Use.BATCH,
        differs="Spark's own has `latest` and JSON only.",
    ),
    Option(
        "endingTimestamp",
        parse_instant,
        None,
        "End before the first record of this timestamp or later, or at the latest offset. Comes "
        "before endingOffsetsByTimestamp and endingOffsets.",
        uses=Use.BATCH,
        differs="As startingTimestamp.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        parse_partition_times,
        None,
        "The same per partition. Comes before endingOffsets.",
        uses=Use.BATCH,
        differs="As startingTimestamp.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        read_count,
        None,
        "At most about this many offsets a micro-batch, shared out in proportion to the backlog of "
        "each partition.",
        uses=Use.STREAM,
    ),
    Option(
        "minOffsetsPerTrigger",
        read_count,
        None,
        "A micro-batch waits until there are so many offsets, but not longer than maxTriggerDelay.",
        uses=Use.STREAM,
    ),
    Option(
        "maxTriggerDelay",
        read_duration,
        900.0,
        "How long minOffsetsPerTrigger holds a micro-batch back at most: `15m`, `30s`, `500ms`.",
        uses=Use.STREAM,
    ),
    Option(
        "maxBytesPerTrigger",
        read_count,
        None,
        "At most about this many bytes a micro-batch, as they lie in the log (compressed), by the "
        "mean size of each partition's offsets. Without the right DESCRIBE on the cluster the "
        "query warns, and goes by the size of the batches that come next.",
        uses=Use.STREAM,
        is_ours=True,
    ),
    Option(
        "commitGroupId",
        read_name,
        None,
        "Commit what micro-batches have read to this consumer group, one batch behind while it "
        "is busy, so that Kafka's tools see the query's lag. For exact commits: "
        "OffsetCommitListener.",
        uses=Use.STREAM,
        is_ours=True,
    ),
    Option(
        "findLossBetweenRuns",
        read_boolean,
        False,
        "Keep in the checkpoint, beside the offsets, which logs they are of: the ids of topics and "
        "the epochs of leaders, from the next batch on. A query that is started again then finds "
        "out that a topic was deleted and made again meanwhile, or a log cut off (an unclean "
        "election), however far it has grown since: a loss, as failOnDataLoss says. Otherwise that "
        "shows only while it is shorter than before.",
        uses=Use.STREAM,
        is_ours=True,
    ),
    Option(
        "failOnDataLoss",
        read_boolean,
        True,
        "Whether records that are gone fail the query; else what is there is read, and a warning "
        "says what is not.",
        differs="An end beyond the log fails at once; Spark's own waits for it first. With `false` "
        "a start beyond the log reads nothing; Spark's own fails.",
    ),
    Option(
        "mode",
        read_mode,
        Mode.FAILFAST,
        "What becomes of a record batch that is damaged (its CRC is wrong, its records are not "
        "what they say): `FAILFAST` fails the query; `DROPMALFORMED` leaves it out, its topic, "
        "partition, offsets and the reason in the log; `PERMISSIVE` also keeps its bytes in a "
        "row of their own, in the column that columnNameOfCorruptRecord names; with the edge of an "
        "input partition or micro-batch inside of it, in a row on each side.",
        differs="Spark's own fails, and cannot be told otherwise. The words are those of Spark's "
        "file sources.",
        is_ours=True,
    ),
    Option(
        "columnNameOfCorruptRecord",
        read_name,
        "_corrupt_record",
        "With mode PERMISSIVE, the column for damaged batches: `struct<reason: string, data: "
        "binary>`, null in all other rows. It has to be among the columns that are asked for.",
        is_ours=True,
    ),
    Option("includeHeaders", read_boolean, False, "Whether there is a column `headers`."),
    Option(
        "minPartitions",
        read_count,
        None,
        "At least about this many input partitions: large topic-partitions are split.",
        differs="While others are split, partitions that hold nothing yet keep an input partition: "
        "they may hold something at the next action.",
    ),
    Option(
        "maxRecordsPerPartition",
        read_count,
        None,
        "At most this many offsets per input partition, as logs end when it is planned: the last "
        "one of a partition that is read to `latest` takes what has come since, too. Applied "
        "before minPartitions.",
        differs="Holds by itself. In a batch, Spark's own (4.2) heeds it beside minPartitions "
        "alone, where that asks for more than there are.",
    ),
    Option(
        "maxPartitions",
        read_count,
        None,
        "At most this many input partitions: topic-partitions are grouped to about equal size.",
        is_ours=True,
    ),
    Option(
        "captureTo",
        read_name,
        None,
        "A folder, on the machine of each process, in which it writes what it says to brokers and "
        "what they answer, as pcapng for `kafkaproto dissect` and Wireshark; secrets left out.",
        uses=Use.READ | Use.WRITE,
        is_ours=True,
    ),
    Option(
        "fetchOffset.numRetries",
        read_count,
        None,
        "Gives the driver's questions about metadata and offsets so many times "
        "`kafka.default.api.timeout.ms`.",
        differs="Retries here end at a deadline, not at a count. By default it is "
        "`kafka.default.api.timeout.ms` in all; Spark's own tries 3 times.",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        read_milliseconds(0),
        None,
        "The wait between tries of these questions, in place of `kafka.retry.backoff.ms`.",
        differs="The default is Kafka's backoff, 100 ms growing to 1 s; Spark's own waits 1 s.",
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        read_milliseconds(1),
        None,
        "How long a task waits for the next records of its range, all tries included, before it "
        "fails; in place of `kafka.default.api.timeout.ms`, and the most for "
        "`kafka.request.timeout.ms`.",
        differs="The default is the client's (60 s); Spark's own takes spark.network.timeout "
        "(120 s).",
    ),
    Option(
        "kafka.group.id",
        read_name,
        None,
        "The consumer group of `committed`; without that it has no effect, and a warning says so.",
        differs="Reading joins no group and needs no right on one; the id is used for `committed` "
        "alone. Spark's own joins it.",
    ),
    Option(
        "groupIdPrefix",
        read_text,
        None,
        "Accepted, with a word in the log: no group is made up, so there is nothing to prefix.",
        differs="Spark's own makes up a group id for every query and starts it with this.",
    ),
    Option(
        "columns",
        read_text,
        None,
        "Columns to read, in order: `key string, value, offset`. The same as `.schema(…)`; what is "
        "not asked for is not decoded.",
        is_ours=True,
    ),
    Option(
        "maxBatchBytes",
        read_count,
        ReadSettings().batch_limit_bytes,
        "The largest record batch that is accepted, in bytes after decompression. A larger one "
        "fails the query whatever `mode` says: it is not damaged.",
        is_ours=True,
    ),
    Option(
        "topic",
        read_name,
        None,
        "Where all rows go, whatever their column `topic` says; needed where there is none.",
        uses=Use.WRITE,
        differs="The topic must exist: writing never creates one.",
    ),
    Option(
        "timestampColumn",
        read_name,
        None,
        "The column with the records' timestamps; null is the time of writing, as without it.",
        uses=Use.WRITE,
        is_ours=True,
    ),
    Option(
        "onInvalidRecord",
        _on_invalid,
        "fail",
        "What becomes of a record that can never be written (too large, no such partition or "
        "topic, refused by the broker): `fail`, or `deadletter`.",
        uses=Use.WRITE,
        is_ours=True,
    ),
    Option(
        "deadLetterTopic",
        read_name,
        None,
        "Where `onInvalidRecord=deadletter` puts such records, the reason in their headers.",
        uses=Use.WRITE,
        is_ours=True,
    ),
    Option(
        "transactionalIdPrefix",
        read_name,
        None,
        "Writes exactly once, in transactions whose ids begin with this: see exactly-once.md. One "
        "batch job at a time, and any number of streams, may have the same.",
        uses=Use.WRITE,
        is_ours=True,
    ),
    Option(
        "decisionTopic",
        read_name,
        "kafkaproto-decisions",
        "Where the commits of `transactionalIdPrefix` are decided; made where it is missing.",
        uses=Use.WRITE,
        is_ours=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A client property that the source refuses by name, as Spark's own does most of them."""

    name: str
    instead: str
    uses: Use


_BYTES = "columns key and value are binary or string; {} them with DataFrame operations"
REFUSED: tuple[Refused, ...] = (
    Refused(
        "kafka.auto.offset.reset",
        "set the source option startingOffsets to say where to start; Spark keeps track of what "
        "was read",
        Use.READ,
    ),
    Refused("kafka.key.deserializer", _BYTES.format("decode"), Use.READ),
    Refused("kafka.value.deserializer", _BYTES.format("decode"), Use.READ),
    Refused(
        "kafka.enable.auto.commit",
        "reading commits nothing; to commit what was read, see plan_ranges and committing",
        Use.READ,
    ),
    Refused("kafka.interceptor.classes", "interceptors are Java classes", Use.READ | Use.WRITE),
    Refused(
        "kafka.transactional.id",
        "a transaction belongs to one task: set the source option transactionalIdPrefix",
        Use.WRITE,
    ),
    Refused("kafka.key.serializer", _BYTES.format("encode"), Use.WRITE),
    Refused("kafka.value.serializer", _BYTES.format("encode"), Use.WRITE),
)


def options_for(use: Use) -> Mapping[str, Option]:
    """The rows that belong to `use`, by lower-cased name."""
    return {option.name.lower(): option for option in OPTIONS if use & option.uses}
