"""`kafkaproto features`: list, upgrade, downgrade."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show, tell
from pyspark_kafkaproto.cli.values import parse_pairs
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import Direction
from pyspark_kafkaproto.errors import ConfigError

_COLUMNS = {
    "feature": "Feature",
    "min_supported": "Min",
    "max_supported": "Max",
    "finalized": "Finalized",
}
_validate_option = click.option(
    "--validate-only", is_flag=True, help="Only ask whether it could be done."
)


@click.group()
def features() -> None:
    """Features of the cluster, metadata.version among them: list, upgrade, downgrade.

    \b
    Examples:
      kafkaproto features list
      kafkaproto features upgrade metadata.version=29 --validate-only
      kafkaproto features downgrade group.version=0
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@features.command("list")
@connected
@json_option
def list_(cluster: KafkaCluster, as_json: bool) -> None:
    """The levels that a broker knows, and the one in force (0: none).

    \b
    Examples:
      kafkaproto features list
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.describe_features()
    rows = [
        {"feature": name, **feature._asdict(), "epoch": found.epoch}
        for name, feature in sorted(found.by_name.items())
    ]
    show(rows, _COLUMNS, as_json=as_json)


@features.command()
@connected
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL…")
@_validate_option
@json_option
def upgrade(
    cluster: KafkaCluster, levels: tuple[str, ...], validate_only: bool, as_json: bool
) -> None:
    """Put higher LEVELs in force, all of them or none; metadata.version seldom goes back.

    \b
    Examples:
      kafkaproto features upgrade metadata.version=29 --validate-only
      kafkaproto features upgrade metadata.version=29 transaction.version=2
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    wanted = _parse(levels)
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
      kafkaproto features downgrade metadata.version=28 --unsafe --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    wanted = _parse(levels)
    if not validate_only:
        lost = " Metadata that the level has not is lost." if unsafe else ""
        confirmed(f"Downgrade {', '.join(levels)}?{lost}", is_sure=is_sure)
    direction = Direction.UNSAFE_DOWNGRADE if unsafe else Direction.SAFE_DOWNGRADE
    cluster.update_features(wanted, direction, validate_only=validate_only)
    _tell(wanted, "downgraded", validate_only=validate_only, as_json=as_json)


def _parse(levels: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for name, text in parse_pairs("FEATURE=LEVEL", levels).items():
        if not (text.isascii() and text.isdecimal()):
            raise ConfigError("FEATURE=LEVEL", f"{name}={text}", "expected a whole number as LEVEL")
        found[name] = int(text)
    return found


def _tell(wanted: Mapping[str, int], what: str, *, validate_only: bool, as_json: bool) -> None:
    result = f"could be {what}" if validate_only else what
    rows = [{"feature": name, "level": level, "result": result} for name, level in wanted.items()]
    pairs = ", ".join(f"{name} to {level}" for name, level in wanted.items())
    tell(rows, f"{result}: {pairs}", as_json=as_json)
