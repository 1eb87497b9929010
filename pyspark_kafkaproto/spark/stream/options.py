"""A stream's options as values, checked together. The rows stand in `option_table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyspark

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.option_table import Use
from pyspark_kafkaproto.spark.options import (
    ENDS,
    STARTS,
    Chosen,
    ReadOptions,
    check_group,
    check_partition_counts,
    check_selection,
    gather,
    read_values,
)
from pyspark_kafkaproto.spark.starts import Latest
from pyspark_kafkaproto.spark.stream.limits import StreamLimits

_LIMITS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Everything a stream was told.

    Attributes:
        read: what it has in common with a batch read; its end is open.
        limits: how much a micro-batch takes.
        commit_group: the group that the source commits to.
        logs_lineage: whether it stands beside the offsets that the engine logs which logs they are
            of.
    """

    read: ReadOptions
    limits: StreamLimits
    commit_group: str | None
    logs_lineage: bool


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Read and check all options of a stream.

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    for name in (*ENDS, "offsetRanges"):
        if name.lower() in options:
            raise ConfigError(
                name, options[name.lower()], "a stream has no end: leave it out, or use spark.read"
            )
    check_selection(options)
    values = read_values(options, Use.STREAM)
    check_partition_counts(values)
    check_group(options, values, (STARTS,))
    most, least = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and least is not None and least > most:
        raise ConfigError(
            "minOffsetsPerTrigger", least, f"is more than maxOffsetsPerTrigger, which is {most}"
        )
    return StreamOptions(
        read=gather(options, values, Chosen("endingOffsets", Latest())),
        limits=StreamLimits(most, least, values["maxTriggerDelay"], values["maxBytesPerTrigger"]),
        commit_group=values["commitGroupId"],
        logs_lineage=values["findLossBetweenRuns"],
    )


def refuse_limits(options: Mapping[str, str]) -> None:
    """Refuse what an engine cannot keep to that knows no limits.

    Raises:
        ConfigError: names the option and the version that has it.
    """
    for name in _LIMITS:
        if name.lower() in options:
            raise ConfigError(
                name,
                options[name.lower()],
                f"limits need PySpark 4.2 or later; this is {pyspark.__version__}, where a batch "
                "takes all there is: leave it out",
            )
