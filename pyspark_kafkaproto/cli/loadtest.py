"""`kafkaproto loadtest`: writes and reads a topic at once, and says whether all came through.

Standard output carries the result alone; the rates of each second go to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from pyspark_kafkaproto.cli.connection import configured
from pyspark_kafkaproto.cli.interrupts import interrupted_code
from pyspark_kafkaproto.cli.output import aside, json_option, show_json
from pyspark_kafkaproto.exit_codes import NOT_WELL

if TYPE_CHECKING:
    from pyspark_kafkaproto.client import Load, LoadTest

_EVERY_S = 1.0


@click.command()
@configured
@click.argument("topic")
@click.option("--size", default=1000, show_default=True, metavar="N", help="Bytes per message.")
@click.option("--seconds", default=10.0, show_default=True, metavar="S", help="How long to write.")
@click.option("--rate", type=int, metavar="N", help="Messages a second.  [default: all that go]")
@json_option
@click.pass_context
def loadtest(
    ctx: click.Context,
    properties: Mapping[str, str],
    topic: str,
    size: int,
    seconds: float,
    rate: int | None,
    as_json: bool,
) -> None:
    """Write messages to TOPIC, which must exist, read them at the same time, check each.

    A message carries its number and a checksum. Ctrl-C ends the writing: what was written is
    still read, and the result shown; a second one leaves at once. Exit code 3: messages were lost,
    damaged, doubled or out of order.

    \b
    Examples:
      kafkaproto loadtest scratch --seconds 5
      kafkaproto loadtest scratch --size 100 --rate 1000 -X acks=1
      kafkaproto loadtest scratch -X compression.type=zstd --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    from pyspark_kafkaproto.client import LoadTest  # noqa: PLC0415 - pyarrow, for this alone

    test = LoadTest(properties, topic, size_bytes=size, seconds=seconds, rate=rate, tell=aside)
    is_interrupted = False
    try:
        _watch(test)
    except KeyboardInterrupt:
        is_interrupted = True
        test.stop()
        _watch(test)
    load = test.finish()
    if as_json:
        show_json(load._asdict() | {"is_sound": load.is_sound})
    else:
        click.echo(_summary(load), nl=False)
    if is_interrupted:
        ctx.exit(interrupted_code())
    if not load.is_sound:
        ctx.exit(NOT_WELL)


def _watch(test: LoadTest) -> None:
    """A line each second, of that second, until the end."""
    before = test.load()
    while not test.wait(_EVERY_S):
        now = test.load()
        seconds = now.seconds - before.seconds
        read = now.valid - before.valid
        click.echo(
            f"{now.seconds:5.0f} s  {(now.sent - before.sent) / seconds:>9,.0f} sent/s"
            f"  {read / seconds:>9,.0f} read/s"
            f"  {(now.valid_bytes - before.valid_bytes) / seconds / 1e6:>7.1f} MB/s"
            f"  {now.sent - now.valid:>9,} on their way"
            f"{f'  {now.invalid:,} invalid' if now.invalid else ''}",
            err=True,
        )
        before = now


def _summary(load: Load) -> str:
    """The result for people."""
    counts = ("sent", "acknowledged", "valid", "invalid", "duplicates", "misordered", "lost")
    lines = [f"{name:<14}{getattr(load, name):>12,}" for name in counts]
    if load.foreign:
        lines.append(f"{'foreign':<14}{load.foreign:>12,}")
    rate, megabytes = load.valid / load.seconds, load.valid_bytes / load.seconds / 1e6
    lines.append(f"{'rate':<14}{rate:>12,.0f} messages/s, {megabytes:.1f} MB/s")
    lines += [f"{f'latency {name}':<14}{ms:>12,.1f} ms" for name, ms in load.latency_ms.items()]
    return "".join(f"{line}\n" for line in lines)
