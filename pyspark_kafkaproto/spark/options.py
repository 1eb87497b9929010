"""The source's options as values: what was given, checked, with what the options mean together.

Which options there are stands in `option_table`. Spark hands option names over in lower case, so
that is how they are looked up; errors show the name as documented.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark_kafkaproto.client import Mode, OffsetRange, ReadSettings
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig, ProducerConfig
from pyspark_kafkaproto.net.properties import as_written_here, names_of, warn_once
from pyspark_kafkaproto.net.secret import HIDDEN
from pyspark_kafkaproto.net.security import is_security_property
from pyspark_kafkaproto.spark.columns import COLUMN_NAMES
from pyspark_kafkaproto.spark.option_table import OPTIONS, REFUSED, Use, options_for
from pyspark_kafkaproto.spark.starts import Ago, Committed, Limit, Timestamp

_log = logging.getLogger(__name__)

CLIENT_PREFIX = "kafka."
_SERVERS = "bootstrap.servers"
_CLIENT_PROPERTIES = {*names_of(ClientConfig), *names_of(ProducerConfig)}

_SELECTIONS = ("assign", "subscribe", "subscribePattern")
_RANGES = "offsetRanges"
_CAPTURE_TO = "captureTo"
# What Spark hands over with a write though it is for Spark alone.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})
# Options without which rows may be there twice: one that reads like them is not passed over.
_PROMISES = frozenset({"transactionalIdPrefix"})
# The first that is given counts; the others are not even read, as in Spark's own connector.
STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_NAMES = {
    Use.BATCH: "batch reads",
    Use.STREAM: "streams",
    Use.WRITE: "writes",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A limit and the option that said it."""

    option: str
    limit: Limit


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Everything a read, of a batch or a stream, was told.

    Attributes:
        client: how tasks reach the cluster.
        driver: how the driver does.
        no_match: `error` or `latest`, where no record is as late as a start's time.
        fallback: the start where the group has committed nothing; None for an error.
    """

    client: ClientConfig
    driver: ClientConfig
    settings: ReadSettings
    subscribe: tuple[str, ...] | None
    subscribe_pattern: re.Pattern[str] | None
    assign: tuple[TopicPartition, ...] | None
    ranges: tuple[OffsetRange, ...] | None
    start: Chosen
    end: Chosen
    no_match: str
    fallback: Limit | None
    group: str | None
    min_partitions: int | None
    max_records: int | None
    max_partitions: int | None

    @property
    def start_option(self) -> str:
        """The option that says where reading starts, for errors to name."""
        return self.start.option if self.ranges is None else _RANGES

    @property
    def end_option(self) -> str:
        """The option that says where reading ends, for errors to name."""
        return self.end.option if self.ranges is None else _RANGES


def lowered(options: Mapping[str, object]) -> dict[str, str]:
    """Options as this room reads them: names in lower case, values as text."""
    return {name.lower(): str(value) for name, value in options.items()}


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read and check all options of a batch read.

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    check_selection(options, (*_SELECTIONS, _RANGES))
    values = read_values(options, Use.BATCH)
    _check_together(options, values)
    end = chosen(options, values, ENDS)
    return gather(options, values, end, values[_RANGES])


def gather(
    options: Mapping[str, str],
    values: Mapping[str, Any],
    end: Chosen,
    ranges: tuple[OffsetRange, ...] | None = None,
) -> ReadOptions:
    """What batch reads and streams have in common, from the values that were read."""
    client = client_config(options)
    assigned = values["assign"]
    start = chosen(options, values, STARTS)
    for name, why in _idle(options, values, start, end):
        if name.lower() in options:
            warn_once(_log, f"option {name} has no effect: {why}")
    return ReadOptions(
        client=_task_config(client, values),
        driver=driver_config(client, values),
        # Spark runs a task for each processor that it has: a thread more would be one too many.
        settings=ReadSettings(
            values["failOnDataLoss"],
            values["maxBatchBytes"],
            values["mode"],
            uses_threads=False,
            columns_option="schema" if values["columns"] is None else "columns",
        ),
        subscribe=values["subscribe"],
        subscribe_pattern=values["subscribePattern"],
        assign=None if assigned is None else tuple(assigned),
        ranges=ranges,
        start=start,
        end=end,
        no_match=no_match(start, values),
        fallback=values["committedFallback"],
        group=values["kafka.group.id"],
        min_partitions=values["minPartitions"],
        max_records=values["maxRecordsPerPartition"],
        max_partitions=values["maxPartitions"],
    )


def read_values(options: Mapping[str, str], use: Use) -> dict[str, Any]:
    """The value of every option that belongs to `use`, by documented name.

    Refuses what Spark's own connector refuses; names what has no effect in a warning. A start or
    end that another one overrides is not read, and has its default.

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    _check_known(options, use)
    overridden = {
        name.lower() for name in (*_overridden(options, STARTS), *_overridden(options, ENDS))
    }
    return {
        option.name: (
            option.read(option.name, options[low])
            if low in options and low not in overridden
            else option.default
        )
        for low, option in options_for(use).items()
    }


def option_value(options: Mapping[str, str], name: str) -> Any:
    """One option's value; for what is needed before all of them are read (the schema)."""
    option = next(row for row in OPTIONS if row.name == name)
    text = options.get(name.lower())
    return option.default if text is None else option.read(option.name, text)


def damaged_column(options: Mapping[str, str]) -> str | None:
    """The column for damaged batches, if there is one."""
    if option_value(options, "mode") is not Mode.PERMISSIVE:
        return None
    name: str = option_value(options, "columnNameOfCorruptRecord")
    if name.lower() in map(str.lower, COLUMN_NAMES):  # to Spark's queries they are the same
        raise ConfigError("columnNameOfCorruptRecord", name, "is a column of the records already")
    return name


def client_config(options: Mapping[str, str]) -> ClientConfig:
    """The options that begin with `kafka.`, as Kafka's client properties."""
    return ClientConfig.parse(client_properties(options), CLIENT_PREFIX)


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The options that begin with `kafka.`, without it, and what others say to the client.

    Raises:
        ConfigError: the cluster is named without that beginning.
    """
    if _SERVERS in options and CLIENT_PREFIX + _SERVERS not in options:
        why = f"there is {_SERVERS!r}: what the client is told begins with {CLIENT_PREFIX}"
        raise ConfigError(CLIENT_PREFIX + _SERVERS, None, why)
    ours = {option.name.lower() for option in OPTIONS}
    properties = {
        name.removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.startswith(CLIENT_PREFIX) and name not in ours
    }
    folder = options.get(_CAPTURE_TO.lower())
    if folder is not None:
        if properties.get("capture.to", folder) != folder:
            said = f"option {CLIENT_PREFIX}capture.to has no effect: {_CAPTURE_TO} comes before it"
            warn_once(_log, said)
        properties["capture.to"] = folder
    return properties


def driver_config(client: ClientConfig, values: Mapping[str, Any]) -> ClientConfig:
    """`client` with the deadline and the waits that the options fetchOffset.… ask for."""
    tries, wait_s = values["fetchOffset.numRetries"], values["fetchOffset.retryIntervalMs"]
    if tries is not None:
        client = replace(client, default_api_timeout_s=client.default_api_timeout_s * tries)
    if wait_s is not None:
        client = replace(client, retry_backoff_s=wait_s, retry_backoff_max_s=wait_s)
    return client


def _task_config(client: ClientConfig, values: Mapping[str, Any]) -> ClientConfig:
    timeout_s = values["kafkaConsumer.pollTimeoutMs"]
    if timeout_s is None:
        return client
    request_timeout_s = min(client.request_timeout_s, timeout_s)
    return replace(client, default_api_timeout_s=timeout_s, request_timeout_s=request_timeout_s)


def chosen(options: Mapping[str, str], values: Mapping[str, Any], names: Collection[str]) -> Chosen:
    """The first of `names` that was given, or the last one with its default."""
    *_, last = names
    name = next((name for name in names if name.lower() in options), last)
    return Chosen(name, values[name])


def no_match(start: Chosen, values: Mapping[str, Any]) -> str:
    """What becomes of a start whose time is later than every record: `error` or `latest`."""
    said: str | None = values["startingOffsetsByTimestampStrategy"]
    return said or ("latest" if start.option == "startingOffsets" else "error")


def check_selection(options: Mapping[str, str], names: Collection[str] = _SELECTIONS) -> None:
    """Exactly one of `names` says what is read.

    Raises:
        ConfigError: none is given, or several.
    """
    given = [name for name in names if name.lower() in options]
    if len(given) != 1:
        raise ConfigError(
            " / ".join(names),
            ", ".join(given) or None,
            "exactly one of them must be given: it says which topics are read"
            + _misspelt(options, names),
        )


def _misspelt(options: Mapping[str, str], names: Collection[str]) -> str:
    """A hint at an option that reads like one of `names`."""
    given = {name.lower() for name in names}
    for option in options:
        meant = None if option in given else _close_to(option, names, cutoff=0.8)
        if meant is not None:
            return f" (there is {option!r}: did you mean {meant}?)"
    return ""


def _close_to(text: str, names: Collection[str], cutoff: float = 0.6) -> str | None:
    """The one of `names` that `text`, in lower case, is likely meant to be."""
    by_low = {name.lower(): name for name in names}
    close = difflib.get_close_matches(text, by_low, n=1, cutoff=cutoff)
    return by_low[close[0]] if close else None


def _overridden(options: Mapping[str, str], names: Collection[str]) -> list[str]:
    given = [name for name in names if name.lower() in options]
    return given[1:]


def _check_known(options: Mapping[str, str], use: Use) -> None:
    known = options_for(use)
    elsewhere = {option.name.lower(): option for option in OPTIONS}
    for refused in REFUSED:
        if use & refused.uses and refused.name in options:
            raise ConfigError(
                refused.name, options[refused.name], f"not supported; {refused.instead}"
            )
    for low in options:
        if low in known or (use is Use.WRITE and low in _SPARKS_OWN):
            continue
        if low in elsewhere:
            warn_once(_log, f"option {elsewhere[low].name} has no effect in {_NAMES[use]}")
            continue
        if not low.startswith(CLIENT_PREFIX):
            _pass_over(low, options, [option.name for option in known.values()])


def _pass_over(low: str, options: Mapping[str, str], known: Collection[str]) -> None:
    """Name an option that is not known, or refuse it where passing over it costs too much."""
    if is_security_property(low):
        why = "has no effect without the prefix, and nothing of security is passed over"
        raise ConfigError(low, HIDDEN, f"{why}: give {CLIENT_PREFIX}{as_written_here(low)}")
    promise = _close_to(low, _PROMISES.intersection(known), cutoff=0.8)
    if promise is not None and promise.lower() not in options:
        why = "is not known, and nothing of exactly once is passed over"
        raise ConfigError(low, options[low], f"{why}; did you mean {promise}?")
    close = CLIENT_PREFIX + low if low in _CLIENT_PROPERTIES else _close_to(low, known)
    hint = f"; did you mean {close}?" if close else ""
    warn_once(_log, f"option {low!r} is not known to kafkaproto and has no effect{hint}")


def _idle(
    options: Mapping[str, str], values: Mapping[str, Any], start: Chosen, end: Chosen
) -> Iterator[tuple[str, str]]:
    """Options of a read that have no effect beside the others, given or not, with why.

    Spark's own connector passes over them without a word.
    """
    for names in (STARTS, ENDS):
        for name in _overridden(options, names):
            yield name, f"{chosen(options, values, names).option} comes before it"
    if not isinstance(start.limit, (Timestamp, Ago)):
        yield "startingOffsetsByTimestampStrategy", "the query starts at no time"
    is_committed = isinstance(start.limit, Committed)
    if not is_committed:
        yield "committedFallback", "the start is not `committed`"
    if not is_committed and not isinstance(end.limit, Committed):
        yield "kafka.group.id", "reading joins no group, and nothing is `committed`"
    if values.get("minOffsetsPerTrigger") is None and "maxTriggerDelay" in values:
        yield "maxTriggerDelay", "there is no minOffsetsPerTrigger"
    if values["mode"] is not Mode.PERMISSIVE:
        yield "columnNameOfCorruptRecord", "mode is not PERMISSIVE"
    yield "groupIdPrefix", "reading uses no consumer group"


def _check_together(options: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """What contradicts each other in a batch read is refused."""
    if _RANGES.lower() in options:
        for name in (*STARTS, *ENDS):
            if name.lower() in options:
                raise ConfigError(
                    name, options[name.lower()], "offsetRanges says already where to start and end"
                )
    check_partition_counts(values)
    check_group(options, values, (STARTS, ENDS))


def check_partition_counts(values: Mapping[str, Any]) -> None:
    """Numbers of input partitions that cannot hold together are refused."""
    least, most = values["minPartitions"], values["maxPartitions"]
    if most is not None and values["maxRecordsPerPartition"] is not None:
        raise ConfigError(
            "maxPartitions", most, "cannot hold beside maxRecordsPerPartition: give one of them"
        )
    if most is not None and least is not None and least > most:
        raise ConfigError("minPartitions", least, f"is more than maxPartitions, which is {most}")


def check_group(
    options: Mapping[str, str], values: Mapping[str, Any], limits: Collection[Collection[str]]
) -> None:
    """`committed` wants to know by whom."""
    if values["kafka.group.id"] is None:
        for names in limits:
            asks = chosen(options, values, names)
            if isinstance(asks.limit, Committed):
                raise ConfigError(
                    "kafka.group.id", None, f"required: {asks.option} is `committed`, but by whom?"
                )
