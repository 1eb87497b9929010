"""`kafkaproto tap`: a recording proxy, for captures without root."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import click

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.tap import Tap


@click.command()
@click.option("--listen", "port", required=True, type=click.IntRange(0, 65535), metavar="PORT")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on, and to tell."
)
@click.option("--to", "target", required=True, metavar="HOST:PORT", help="A broker.")
@click.option("-w", "--write", "file", required=True, metavar="FILE", help="pcapng; - for stdout.")
def tap(port: int, host: str, target: str, file: str) -> None:
    """Forward clients to a cluster and record what is said, as pcapng, until Ctrl-C.

    Clients connect to the tap instead of the broker and stay on it: the addresses that brokers
    tell are replaced by ports of the tap. Secrets are left out of the file, which only its owner
    can read. Plaintext listeners only.

    \b
    Examples:
      kafkaproto tap --listen 19092 --to broker-1:9092 -w talk.pcapng
      kafkaproto consume orders -b 127.0.0.1:19092
      kafkaproto tap --listen 19092 --to broker-1:9092 -w - | kafkaproto dissect -
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    broker = Endpoint.parse(target, "--to")
    if file == "-":
        _run(port, broker, host, sys.stdout.buffer)
        return
    try:
        # Without a buffer: what could not be written must not be tried again as the file is closed.
        with private_file(Path(file)) as stream:
            _run(port, broker, host, stream)
    except OSError as error:
        raise ConfigError("--write", file, f"it cannot be written: {error.strerror}") from error
    click.echo(f"kafkaproto dissect {file}", err=True)


def private_file(path: Path) -> BinaryIO:
    """A new file that its owner alone can read, in place of an old one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    stream = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
    path.chmod(0o600)
    return stream


def _run(port: int, broker: Endpoint, host: str, stream: BinaryIO) -> None:
    ended = threading.Event()
    failures: list[OSError] = []

    def end(*_: Any) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    def write(data: bytes) -> None:
        left = memoryview(data)
        try:
            while left and not failures:
                left = left[stream.write(left) :]
            stream.flush()
        except BrokenPipeError:  # nobody reads the capture any more
            ended.set()
        except OSError as error:  # a full disk: what is said from here on would be lost
            failures.append(error)
            ended.set()

    with Tap(port, broker, write, host) as running:
        click.echo(f"{running.endpoint} leads to {broker}; Ctrl-C ends it", err=True)
        ended.wait()
    if failures:
        raise failures[0]
