"""Which groups a command is about: those that are named, or all there are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import click

from pyspark_kafkaproto.cluster import GROUP_TYPES, KafkaCluster
from pyspark_kafkaproto.cluster.groups.described import ListedGroup

_OF_OTHER_TOOLS = ("share", "streams")


def type_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--type`, of groups."""
    return click.option(
        "--type",
        "types",
        type=click.Choice(GROUP_TYPES, case_sensitive=False),
        multiple=True,
        help="Those of this type alone; repeatable.",
    )(command)


def all_groups_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--all-groups` in place of names, and `--type` beside it."""
    every = click.option(
        "--all-groups", "every", is_flag=True, help="All that there are, in place of GROUPs."
    )
    return every(type_option(command))


def check_named(names: Collection[str], types: Collection[str], *, every: bool) -> None:
    """Refuse no groups at all, and names beside all of them.

    Raises:
        UsageError: it is so.
    """
    if every and names:
        raise click.UsageError(f"--all-groups goes without names: {', '.join(names)}")
    if types and not every:
        raise click.UsageError("--type goes with --all-groups")
    if not every and not names:
        raise click.UsageError("name groups, or give --all-groups")


def all_readers(cluster: KafkaCluster, types: Collection[str]) -> list[ListedGroup]:
    """All groups of `types` that are about topics' partitions.

    Without types those that Kafka's own tool of this option is about, as nobody means more who
    deletes all in its words: consumers' groups, by either protocol. Workers of Kafka Connect and
    the like are in groups, too, which have nothing to reset, and are left out there as well.
    """
    found = [item for item in cluster.list_groups(types=types) if item.reads_topics]
    return found if types else [item for item in found if item.type not in _OF_OTHER_TOOLS]
