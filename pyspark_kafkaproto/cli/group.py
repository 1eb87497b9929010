"""The group that holds every command, and what is common to them: the version, plain errors."""

from __future__ import annotations

from typing import Any

import click

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.cli.devbroker import devbroker
from pyspark_kafkaproto.errors import KafkaProtoError


class _PlainErrors(click.Group):
    """Shows an error of this package as a line, not as a traceback; the exit code is 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KafkaProtoError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_PlainErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafkaproto")
def kafkaproto() -> None:
    """Apache Kafka from Python, by its own wire protocol.

    \b
    Examples:
      kafkaproto devbroker start          a real Kafka on this machine
      kafkaproto devbroker status --json  where it answers
      kafkaproto devbroker stop
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


kafkaproto.add_command(devbroker)
