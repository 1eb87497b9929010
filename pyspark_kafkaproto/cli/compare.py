"""`kafkaproto compare`: both connectors over the same ranges: rows, hashes, speed.

Spark runs in a process of its own, so that the command line never imports it. What it is told goes
through its standard input: passwords are not for the list of processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from pyspark_kafkaproto.cli.connection import configured
from pyspark_kafkaproto.cli.output import json_option

_JOB = "pyspark_kafkaproto.jobs.compare"
_GRACE_S = 2.0


@click.command()
@configured
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
@click.option("--option", "reading", metavar="KEY=VALUE", multiple=True, help="Of spark.read.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often each reads; the fastest is shown.",
)
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark's.")
@json_option
def compare(
    properties: Mapping[str, str],
    topics: tuple[str, ...],
    reading: tuple[str, ...],
    runs: int,
    master: str,
    as_json: bool,
) -> None:
    """Read TOPICs with this source and with Spark's own connector, and compare.

    Exit code 3 if a partition has other rows. Spark's own connector is fetched once, as Kafka is.

    \b
    Examples:
      kafkaproto compare orders
      kafkaproto compare orders --option startingOffsets=latest-1000000 --runs 3
      kafkaproto compare --option 'subscribePattern=^orders'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if find_spec("pyspark") is None:
        raise click.ClickException("Spark is not there: pip install 'pyspark-kafkaproto[spark]'")
    Path.cwd()  # raises where Spark would not start
    options = {f"kafka.{name}": value for name, value in properties.items()}
    pairs = list(map(_pair, reading))
    given = dict(pairs)
    if len(set(map(str.lower, given))) < len(pairs):
        raise click.BadParameter("expected each KEY once, in any case", param_hint="--option")
    if topics and "subscribe" in map(str.lower, given):
        raise click.UsageError("TOPICs are the option subscribe: name them once")
    options |= {"subscribe": ",".join(topics)} if topics else {}
    options |= given
    words = [sys.executable, "-m", _JOB, "--options", "-", "--master", master]
    words += ["--runs", str(runs), *(["--json"] if as_json else [])]
    click.get_current_context().exit(_run(words, json.dumps(options)))


def _run(words: Sequence[str], told: str) -> int:
    """Run the job to its end, or end all of it: its exit code.

    Ctrl-C would not reach Spark's JVM, which is shielded from it, and leave it behind where its
    Python has not got far enough to end it. So the job has a session of its own, ended from here.
    """
    with subprocess.Popen(  # noqa: S603 - our own module
        words, stdin=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        try:
            job.communicate(told)
        except BaseException:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):  # all of it has ended
                    os.killpg(job.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    job.wait(_GRACE_S)
            raise
    return job.returncode


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        # What was given may be a secret that lost its key.
        raise click.BadParameter("expected KEY=VALUE", param_hint="--option")
    return key, value
