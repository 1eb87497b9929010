"""The group that holds every command, and what is common to them: plain errors, exit codes.

A command's module is loaded when the command is named: `--version` waits for none of them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.cli.files import NO_ROOM
from pyspark_kafkaproto.cli.interrupts import interrupted_code
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.exit_codes import NOBODY_READS, exit_code_of
from pyspark_kafkaproto.wire.printable import printed

# command -> module in this package that has it under its own name
_COMMANDS = (
    "acls",
    "brokers",
    "compare",
    "completion",
    "configs",
    "consume",
    "devbroker",
    "dissect",
    "doctor",
    "features",
    "groups",
    "lag",
    "leaders",
    "loadtest",
    "metadata",
    "offsets",
    "produce",
    "quotas",
    "quorum",
    "reassignments",
    "tap",
    "tokens",
    "topics",
    "transactions",
    "users",
)


# A full disk; a terminal that has gone; a file that is open for reading alone.
_UNWRITABLE = (*NO_ROOM, errno.EIO, errno.EBADF)


class _Failure(click.ClickException):
    """An error of this package as click shows errors, with its exit code."""

    def __init__(self, error: KafkaProtoError) -> None:
        # What an error advises who reads or writes, no command has as an option.
        text = str(error).replace(getattr(error, "advice", ""), "")
        # What brokers say of an error may be anything; lines and tabs are ours.
        super().__init__("\n".join(map(printed, text.expandtabs().split("\n"))))
        self.exit_code = exit_code_of(error)  # type: ignore[misc]  # click says to set it so


class _Commands(click.Group):
    """Shows an error of this package as a line, not as a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"pyspark_kafkaproto.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # click looks for near names among commands that are loaded: here there are none.
            near = get_close_matches(args[0], () if args[0][:1] == "-" else _COMMANDS)
            if not near:
                raise
            meant = f"Did you mean {' or '.join(map(repr, near))}?"
            raise click.UsageError(f"{error.message} {meant}", error.ctx) from None

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        try:  # for --help and --version
            with _in_one_line():
                return super().make_context(*arguments, **options)
        except BrokenPipeError:
            _leave_output()
            raise click.exceptions.Exit(NOBODY_READS) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _in_one_line():
                result = super().invoke(ctx)
                sys.stdout.flush()  # here, where a reader that has gone is no traceback
        except KafkaProtoError as error:
            if "pyspark_kafkaproto.cluster" in sys.modules:  # else nothing was asked of a broker
                import_module("pyspark_kafkaproto.cluster.capturing").add_packets(error)
            raise _Failure(error) from error
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(interrupted_code())
        except BrokenPipeError:
            _leave_output()
            ctx.exit(NOBODY_READS)
        return result


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Standard output that cannot be written, or no folder to be in, as an error of one line."""
    try:
        yield
    except OSError as error:
        # A file's own error has its name; what is left is where commands are, and write to.
        is_unnamed = error.filename is None
        if is_unnamed and isinstance(error, FileNotFoundError) and _is_nowhere():
            text = "the working directory was deleted: change to one that is there (cd)"
            raise click.ClickException(text) from error
        if not is_unnamed or error.errno not in _UNWRITABLE:
            raise
        _leave_output()
        text = f"standard output cannot be written: {error.strerror}"
        raise click.ClickException(text) from error


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _leave_output() -> None:
    """What is still in the buffer goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafkaproto")
def kafkaproto() -> None:
    """Apache Kafka from Python, by its own wire protocol.

    \b
    Examples:
      kafkaproto metadata -b broker-1:9092
      kafkaproto consume orders --from -10m --count 5
      kafkaproto produce orders < lines      a record for each line
      kafkaproto lag reports --watch
      kafkaproto doctor -F client.properties
      kafkaproto compare orders              both connectors, rows and speed
      kafkaproto loadtest scratch            does it take and give what it should?
      kafkaproto devbroker start             a real Kafka on this machine
      kafkaproto dissect trace.pcap          what was said on the wire

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the answer is no (no broker runs, a hop
    is broken, rows differ), 4 no broker answers, 5 not allowed, 130 Ctrl-C, 141 nobody reads the
    output, 143 SIGTERM.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
