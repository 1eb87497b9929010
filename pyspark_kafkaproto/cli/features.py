"""`kafkaproto features`: list, upgrade, downgrade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show, tell
from pyspark_kafkaproto.cli.values import parse_pairs
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import Direction
from pyspark_kafkaproto.cluster.admin.features import (
    METADATA_VERSION,
    level_of_release,
    release_of,
)
from pyspark_kafkaproto.errors import ConfigError

_COLUMNS = {
    "feature": "Feature",
    "min_supported": "Min",
    "max_supported": "Max",
    "finalized": "Finalized",
}
_LEVELS = ("min_supported", "max_supported", "finalized")
_validate_option = click.option(
    "--validate-only", is_flag=True, help="Only ask whether it could be done."
)


@click.group()
def features() -> None:
    """Features of the cluster, metadata.version among them: list, upgrade, downgrade.

    \b
    Examples:
      kafkaproto features list
      kafkaproto features upgrade metadata.version=4.4 --validate-only
      kafkaproto features downgrade group.version=0
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@features.command("list")
@connected
@json_option
def list_(cluster: KafkaCluster, as_json: bool) -> None:
    """The levels that a broker knows, and the one in force (0: none).

    Those of metadata.version are shown with the words of Kafka's releases, as far as they are known
    here; of a newer broker's they are numbers alone.

    \b
    Examples:
      kafkaproto features list
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.describe_features()
    rows: list[dict[str, Any]] = [
        {"feature": name, **feature._asdict(), "epoch": found.epoch}
        for name, feature in sorted(found.by_name.items())
    ]
    if as_json:
        releases = ({key: release_of(row["feature"], row[key]) for key in _LEVELS} for row in rows)
        rows = [{**row, "releases": own} for row, own in zip(rows, releases, strict=True)]
    else:
        rows = [row | {key: _text(row["feature"], row[key]) for key in _LEVELS} for row in rows]
    show(rows, _COLUMNS, as_json=as_json)


@features.command()
@connected
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL…")
@_validate_option
@yes_option
@json_option
def upgrade(
    cluster: KafkaCluster,
    levels: tuple[str, ...],
    validate_only: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Put higher LEVELs in force, all of them or none; metadata.version seldom goes back.

    A LEVEL is a number; of metadata.version it may be a release's word, too: 4.2-IV1, or 4.2 for
    the last one of that release.

    \b
    Examples:
      kafkaproto features upgrade metadata.version=4.4 --validate-only
      kafkaproto features upgrade metadata.version=33 transaction.version=2
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    wanted = _parse(levels)
    if not validate_only:
        stays = f" {METADATA_VERSION} seldom goes back." if METADATA_VERSION in wanted else ""
        confirmed(f"Upgrade {_pairs(wanted)}?{stays}", is_sure=is_sure)
    cluster.update_features(wanted, Direction.UPGRADE, validate_only=validate_only)
    _tell(wanted, "upgraded", validate_only=validate_only, as_json=as_json)


@features.command()
@connected
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL…")
@click.option("--unsafe", is_flag=True, help="Though metadata is lost that the level has not.")
@_validate_option
@yes_option
@json_option
def downgrade(
    cluster: KafkaCluster,
    levels: tuple[str, ...],
    unsafe: bool,
    validate_only: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Put lower LEVELs in force, all of them or none; 0 is none at all.

    \b
    Examples:
      kafkaproto features downgrade group.version=0 --validate-only
      kafkaproto features downgrade share.version=0 transaction.version=1 --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    wanted = _parse(levels)
    if not validate_only:
        lost = " Metadata that the level has not is lost." if unsafe else ""
        confirmed(f"Downgrade {_pairs(wanted)}?{lost}", is_sure=is_sure)
    direction = Direction.UNSAFE_DOWNGRADE if unsafe else Direction.SAFE_DOWNGRADE
    cluster.update_features(wanted, direction, validate_only=validate_only)
    _tell(wanted, "downgraded", validate_only=validate_only, as_json=as_json)


def _parse(levels: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for name, text in parse_pairs("FEATURE=LEVEL", levels, "FEATURE=LEVEL").items():
        is_number = text.isascii() and text.isdecimal()
        level = int(text) if is_number else level_of_release(name, text)
        if level is None:
            allowed = "expected a whole number as LEVEL"
            if name == METADATA_VERSION:
                allowed += ", or a release that is known here, such as 4.2-IV1"
            raise ConfigError("FEATURE=LEVEL", f"{name}={text}", allowed)
        found[name] = level
    return found


def _text(name: str, level: int) -> str:
    """`30 (4.3-IV0)`: a level with Kafka's word for it, where that is known."""
    release = release_of(name, level)
    return str(level) if release is None else f"{level} ({release})"


def _pairs(wanted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} to {_text(name, level)}" for name, level in wanted.items())


def _tell(wanted: Mapping[str, int], what: str, *, validate_only: bool, as_json: bool) -> None:
    result = f"could be {what}" if validate_only else what
    rows = [{"feature": name, "level": level, "result": result} for name, level in wanted.items()]
    tell(rows, f"{result}: {_pairs(wanted)}", as_json=as_json)
