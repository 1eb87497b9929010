"""The source's options: one table of names, defaults and readers; what they mean, in Spark's words.

Spark hands option names over in lower case, so that is how the table is looked up; errors show the
name as documented.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_kafkaproto.client import ReadSettings
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.spark.starts import (
    Earliest,
    Latest,
    Limit,
    parse_end,
    parse_partitions,
    parse_start,
)

_log = logging.getLogger(__name__)

CLIENT_PREFIX = "kafka."


def _boolean(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise ConfigError(name, text, "expected true or false")
    return word == "true"


def _at_least_one(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(name, text, "expected a whole number, 1 or more")
    return int(text)


def _topics(name: str, text: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not topics:
        raise ConfigError(name, text, "expected the names of topics: topicA,topicB")
    return topics


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(name, text, f"expected a regular expression ({error})") from None


def _as_is(name: str, text: str) -> str:
    del name
    return text


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, how its text is read, and what holds when it is not given."""

    name: str
    read: Callable[[str, str], Any]
    default: Any
    meaning: str


OPTIONS = (
    Option("subscribe", _topics, None, "topics to read, separated by commas"),
    Option("subscribePattern", _pattern, None, "a regular expression that topics' names contain"),
    Option("assign", parse_partitions, None, "partitions to read, as JSON"),
    Option("startingOffsets", parse_start, Earliest(), "`earliest`, or offsets as JSON"),
    Option("endingOffsets", parse_end, Latest(), "`latest`, or offsets as JSON"),
    Option("includeHeaders", _boolean, False, "whether there is a column `headers`"),
    Option("failOnDataLoss", _boolean, True, "whether records that are gone fail the query"),
    Option("maxPartitions", _at_least_one, None, "at most this many input partitions"),
    Option("columns", _as_is, None, "columns to read, in order: `key string, value, offset`"),
    Option(
        "maxBatchBytes",
        _at_least_one,
        ReadSettings().batch_limit_bytes,
        "the largest record batch that is accepted, in bytes after decompression",
    ),
)
_TABLE = {option.name.lower(): option for option in OPTIONS}

# Options of Spark's own connector that this version does not have: accepting one and doing nothing
# would give other rows than the user expects.
_NOT_YET = {
    name.lower(): name
    for name in (
        "startingTimestamp",
        "endingTimestamp",
        "startingOffsetsByTimestamp",
        "endingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "minPartitions",
        "maxRecordsPerPartition",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "kafkaConsumer.pollTimeoutMs",
        "groupIdPrefix",
        "kafka.group.id",
    )
}
_SELECTIONS = ("assign", "subscribe", "subscribePattern")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Everything a batch read was told."""

    client: ClientConfig
    settings: ReadSettings
    subscribe: tuple[str, ...] | None
    subscribe_pattern: re.Pattern[str] | None
    assign: tuple[TopicPartition, ...] | None
    start: Limit
    end: Limit
    max_partitions: int | None


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read and check all options of a batch read.

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    _check_known(options)
    _check_selection(options)
    values = {
        option.name: option.read(option.name, options[low]) if low in options else option.default
        for low, option in _TABLE.items()
    }
    assigned = values["assign"]
    return ReadOptions(
        client=client_config(options),
        settings=ReadSettings(values["failOnDataLoss"], values["maxBatchBytes"]),
        subscribe=values["subscribe"],
        subscribe_pattern=values["subscribePattern"],
        assign=None if assigned is None else tuple(assigned),
        start=values["startingOffsets"],
        end=values["endingOffsets"],
        max_partitions=values["maxPartitions"],
    )


def client_config(options: Mapping[str, str]) -> ClientConfig:
    """The options that begin with `kafka.`, as Kafka's client properties."""
    properties = {
        name.removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.startswith(CLIENT_PREFIX)
    }
    return ClientConfig.parse(properties, CLIENT_PREFIX)


def option_value(options: Mapping[str, str], name: str) -> Any:
    """One option's value; for what is needed before all of them are read (the schema)."""
    option = _TABLE[name.lower()]
    text = options.get(name.lower())
    return option.default if text is None else option.read(option.name, text)


def _check_known(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        low = name.lower()
        if low in _NOT_YET:
            raise ConfigError(_NOT_YET[low], value, "this version does not support this option")
        if low in _TABLE or low.startswith(CLIENT_PREFIX):
            continue
        close = difflib.get_close_matches(low, _TABLE, n=1)
        hint = f"; did you mean {_TABLE[close[0]].name}?" if close else ""
        _log.warning("option %r is not known to kafkaproto and has no effect%s", name, hint)


def _check_selection(options: Mapping[str, str]) -> None:
    given = [name for name in _SELECTIONS if name.lower() in options]
    if len(given) != 1:
        raise ConfigError(
            " / ".join(_SELECTIONS),
            ", ".join(given) or None,
            "exactly one of them must be given: it says which topics are read",
        )
