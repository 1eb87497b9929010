"""Where `--from` and `--to` point: words, offsets and times as an offset of each partition.

What is not quite as it was asked for is said on standard error; what cannot be meant is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import click

from pyspark_kafkaproto.cli.moments import TIME_EXAMPLE, parse_time
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.client.following import Offsets
from pyspark_kafkaproto.client.last_records import find_last
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import ConfigError

_LAST = re.compile(r"last:(\d{1,18})")
# As Spark's option startingOffsets has it, and kcat.
_OTHERS_LAST = re.compile(r"(?:latest-|last-|-(?=\d+$))(\d*).*")
# Longer numbers are times in milliseconds.
_MOST_OFFSET_DIGITS = 12


class Bounds:
    """Where partitions begin and end when they are asked for, and what lies between.

    Args:
        cluster: whom to ask.
        refused: takes the errors of those whose leader does not say it.
    """

    def __init__(self, cluster: KafkaCluster, refused: Refused) -> None:
        self._cluster = cluster
        self._refused = refused
        self._is_stable = cluster.config.is_read_committed
        self._first: Offsets = {}
        self._last: Offsets = {}
        self._times: dict[str, int] = {}  # -10m means one time, whoever is led later

    def ask(self, partitions: set[TopicPartition], *, waits: bool) -> set[TopicPartition]:
        """Look where `partitions` begin and end; the rest is about those of them that it gives.

        Args:
            partitions: whose.
            waits: whether for those that nobody leads; else they are left out.
        """
        latest = partial(self._cluster.get_latest_leader_offsets, waits_for_leaders=waits)
        last = self._refused.known(partial(latest, partitions))
        # Not of the others, which would be waited for once more.
        earliest = partial(self._cluster.get_earliest_leader_offsets, set(last))
        self._first = dict(self._refused.known(earliest))
        self._last = {item: last[item] for item in self._first}
        return set(self._last)

    def within(self, offsets: Mapping[TopicPartition, int | None]) -> Offsets:
        """`offsets`, moved to the nearest record that is there; None is behind the last."""
        return {
            item: self._last[item]
            if offset is None
            else min(max(offset, self._first[item]), self._last[item])
            for item, offset in offsets.items()
        }

    def go_on(self, group: str, committed: Offsets) -> Offsets:
        """Where a group goes on: what it has committed, and what is gone meanwhile is told.

        Raises:
            ConfigError: what it has committed lies behind the end.
        """
        own = {item: committed[item] for item in committed.keys() & self._last.keys()}
        for item, offset in sorted(own.items()):
            last = self._last[item]
            self._tell_gone(item, offset)
            if offset > last and not self._is_stable:  # the last stable offset is no end
                why = f"group {group!r} has committed {offset} for {item}, which ends at {last}: "
                why += "its end was cut off, or the topic was made anew (kafkaproto groups reset)"
                raise ConfigError("--group", group, why)
        return {item: max(offset, self._first[item]) for item, offset in own.items()}

    def find(self, option: str, where: str) -> Offsets:
        """The offset of each partition that `where` means."""
        if where == "earliest":
            return dict(self._first)
        if where == "latest":
            return dict(self._last)
        if where.isdecimal() and len(where) <= _MOST_OFFSET_DIGITS:
            if option == "--from":
                self._tell_outside(int(where))
            return self.within(dict.fromkeys(self._first, int(where)))
        if match := _LAST.fullmatch(where):
            return find_last(self._cluster, self._first, self._last, int(match[1]))
        if match := _OTHERS_LAST.fullmatch(where):
            count = match[1] or "N"
            hint = f"last:{count} for the last {'record' if count == '1' else f'{count} records'}"
            other = ", or -10m (ms, s, m, h, d, w) for that long ago" if where[0] == "-" else ""
            raise ConfigError(option, where, f"write {hint} of each partition{other}")
        others = f"earliest, latest, an offset, last:N, {TIME_EXAMPLE}"
        time_ms = self._times.setdefault(where, parse_time(option, where, others))
        found = self._cluster.get_leader_offsets(self._first.keys(), time_ms)
        none = sorted(item for item, offset in found.items() if offset is None)
        for item in none if option == "--from" else ():
            click.echo(f"{item}: no record is as new as {where}", err=True)
        return self.within(found)

    def _tell_outside(self, offset: int) -> None:
        """Say which partitions end before `offset`, then which begin behind it."""
        for item, end in sorted(self._last.items()):
            if offset > end:
                click.echo(f"{item}: it ends at offset {end}", err=True)
        for item in sorted(self._first):
            self._tell_gone(item, offset)

    def _tell_gone(self, item: TopicPartition, offset: int) -> None:
        """Say what of a partition that was to be read from `offset` on is there no longer."""
        first = self._first[item]
        if offset < first:
            gone = f"offsets {offset} to {first - 1} are gone"
            click.echo(f"{item}: {gone}, it begins at {first} now", err=True)
