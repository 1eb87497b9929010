"""`kafkaproto tap`: a recording proxy, for captures without root."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import click

from pyspark_kafkaproto.capture.frame_file import FrameFile
from pyspark_kafkaproto.cli.interrupts import wakes
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.exit_codes import FAILED, NOBODY_READS
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.tap import Tap

# Of a file system without locks, or of one whose server has none.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@click.command()
@click.option(
    "--listen",
    "port",
    required=True,
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Where clients connect; 0: one that is free.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on, and to tell.",
)
@click.option("--to", "target", required=True, metavar="HOST:PORT", help="A broker.")
@click.option("-w", "--write", "file", required=True, metavar="FILE", help="pcapng; - for stdout.")
@click.pass_context
def tap(ctx: click.Context, port: int, host: str, target: str, file: str) -> None:
    """Forward clients to a cluster and record what is said, as pcapng, until Ctrl-C.

    Clients connect to the tap instead of the broker and stay on it: the addresses that brokers
    tell are replaced by ports of the tap. Secrets are left out of the file, which only its owner
    can read. Plaintext listeners only. When the disk is full the recording ends with a warning;
    clients go on, and the exit code is 1.

    \b
    Examples:
      kafkaproto tap --listen 19092 --to broker-1:9092 -w talk.pcapng
      kafkaproto consume orders -b 127.0.0.1:19092
      kafkaproto tap --listen 19092 --to broker-1:9092 -w - | kafkaproto dissect -
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    broker = Endpoint.parse(target, "--to")
    end = _End()
    recording = _Recording(file, end)
    with end.heeded(), Tap(port, broker, recording.write, host) as running:
        click.echo(f"{running.endpoint} leads to {broker}; Ctrl-C ends it", err=True)
        end.wait()
    recording.close()
    if file != "-":
        click.echo(f"to look at it: kafkaproto dissect {shlex.quote(file)}", err=True)
    if recording.is_unread:
        ctx.exit(NOBODY_READS)
    if recording.is_cut:
        ctx.exit(FAILED)


class _End:
    """What the main thread waits for: Ctrl-C, SIGTERM, or word from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told = self._wake = -1

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """While the end can be told, and waited for."""
        with wakes(lambda *_: None) as pipe:
            self._told, self._wake = pipe
            try:
                yield
            finally:
                with self._lock:  # a thread may tell the end after it came
                    self._wake = -1

    def wait(self) -> None:
        """Until the end is told."""
        os.read(self._told, 1)

    def tell(self) -> None:
        """End it, from any thread."""
        with self._lock:
            if self._wake >= 0:
                with suppress(BlockingIOError):  # full of what says the same
                    os.write(self._wake, b"\0")


class _Recording:
    """What `-w` names, opened at the first bytes: a tap that cannot listen leaves it as it is.

    Attributes:
        is_unread: whether nobody reads it any more.
    """

    def __init__(self, name: str, end: _End) -> None:
        self.is_unread = False
        self._error: OSError | None = None
        self._name = name
        self._shown = "standard output" if name == "-" else name
        self._end = end
        self._file: FrameFile | None = None

    @property
    def is_cut(self) -> bool:
        """Whether not all that was said is in it."""
        return self._error is not None

    def write(self, data: bytes) -> None:
        """The file's next bytes; the first come before any client does."""
        if self._file is not None:
            self._file.write(data)
            return
        file = FrameFile(_opened(self._name), self._stop)
        file.write(data)
        if self._error is not None:
            text = f"{self._shown} cannot be written: {self._error.strerror}"
            raise click.ClickException(text)
        self._file = file

    def _stop(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self.is_unread = True
            self._end.tell()
            return
        self._error = error
        if self._file is not None:
            text = f"{self._shown} takes no more: {error.strerror}; clients go on, unrecorded"
            click.echo(text, err=True)

    def close(self) -> None:
        """Nothing is written any more."""
        if self._file is not None:
            self._file.close()


def _opened(name: str) -> BinaryIO:
    """The file without a buffer, private and empty, or standard output."""
    if name == "-":
        return open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)
    try:
        stream = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), "wb", buffering=0)
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            _take_over(stream, name)
    except OSError as error:
        raise ConfigError("--write", name, f"it cannot be written: {error.strerror}") from error
    return stream


def _take_over(stream: BinaryIO, name: str) -> None:
    """Empty the file, for its owner alone, unless another tap is writing to it."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError("--write", name, "another tap is writing to it now") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    os.fchmod(stream.fileno(), 0o600)
    stream.truncate()
