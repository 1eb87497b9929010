"""A Java program of this folder as a long-lived process: a frame in, a frame out."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark_kafkaproto.devbroker.jars import _spark_jar
from pyspark_kafkaproto.devbroker.java import SHORT_RUN, find_java

SOURCES = Path(__file__).resolve().parent / "java"
_COMPILE_S = 120.0
_END_S = 10.0


def spark_jars(*names: str) -> list[str]:
    """Libraries that Kafka's classes need and PySpark ships."""
    return [str(_spark_jar(name)) for name in names]


class JavaProcess:
    """Runs one Java source: compiled first where there is a compiler of its own.

    Args:
        source: file name in java/, which is its class too.
        class_path: jars.
        arguments: of the program.
        replacing: parts of the source to replace, and with what.
    """

    def __init__(
        self,
        source: str,
        class_path: Sequence[str],
        arguments: Sequence[str] = (),
        replacing: Mapping[str, str] | None = None,
    ) -> None:
        self._text = (SOURCES / source).read_text(encoding="utf-8")
        for part, replacement in (replacing or {}).items():
            self._text = self._text.replace(part, replacement)
        self._source = source
        self._class_path = class_path
        self._arguments = arguments
        self._open = ExitStack()

    def __enter__(self) -> Self:
        folder = self._open.enter_context(tempfile.TemporaryDirectory())
        self._stderr = self._open.enter_context(tempfile.TemporaryFile())
        file = Path(folder, self._source)
        file.write_text(self._text, encoding="utf-8")
        command = [find_java(), *SHORT_RUN, "-cp"]
        if compiler := shutil.which("javac"):
            _compile(compiler, file, self._class_path)
            command += [":".join([folder, *self._class_path]), file.stem]
        else:
            command += [":".join(self._class_path), str(file)]
        self._process = subprocess.Popen(
            [*command, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=_END_S)  # the end of its input is its end
        finally:
            self._process.kill()
            self._process.wait()
            self._open.close()

    def ask(self, frame: bytes) -> bytes:
        """The answer to one frame."""
        self.send(frame)
        return self.receive()

    def send(self, frame: bytes) -> None:
        """Send one frame, whose answer `receive` gives."""
        try:
            self._process.stdin.write(sized(frame))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self) -> bytes:
        """The answer to the oldest frame that was sent."""
        size = self._process.stdout.read(4)
        data = self._process.stdout.read(int.from_bytes(size))
        if len(size) < 4 or len(data) < int.from_bytes(size):
            raise self._ended()
        return data

    def _ended(self) -> RuntimeError:
        code = self._process.wait(_END_S)
        self._stderr.seek(0)
        return RuntimeError(f"Java ended with {code}:\n{self._stderr.read().decode()}")


def _compile(compiler: str, file: Path, class_path: Sequence[str]) -> None:
    done = subprocess.run(
        [compiler, "-Werror", "-Xlint:all", "-cp", ":".join(class_path), str(file)],
        capture_output=True,
        text=True,
        timeout=_COMPILE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{file.name} does not compile:\n{done.stdout}{done.stderr}")


def sized(data: bytes) -> bytes:
    """Bytes behind their size, as the programs here read and write all of theirs."""
    return len(data).to_bytes(4) + data


class Reader:
    """Takes an answer apart."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    def integer(self, size: int) -> int:
        """A signed number of `size` bytes."""
        return int.from_bytes(self.take(size), signed=True)

    def sized(self) -> bytes:
        """Bytes behind their size."""
        return self.take(self.integer(4))

    def take(self, size: int) -> bytes:
        """The next bytes."""
        self._pos += size
        return self._data[self._pos - size : self._pos]

    @property
    def is_done(self) -> bool:
        """Whether all of it was read."""
        return self._pos == len(self._data)
