"""Files that several processes meet at: locks that die with their holder, files written whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed

_T = TypeVar("_T")


class FileLock:
    """An advisory lock on a file; the system takes it back from a process that dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it; whether it was taken."""
        handle = self.path.open("ab")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._handle is not None:
            # Said in so many words: a process forked meanwhile shares the open file, and with it
            # a lock that is only closed.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            self._handle.close()
            self._handle = None


def read_json(path: Path, make: Callable[..., _T]) -> _T | None:
    """What `make` makes of the JSON object in a file; None where there is no such file.

    Raises:
        DevBrokerFailed: nothing of ours stands in it.
    """
    try:
        return make(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DevBrokerFailed(f"{path} cannot be read: {error.strerror}") from error
    except (RecursionError, TypeError, ValueError) as error:
        raise DevBrokerFailed(
            f"{path} holds nothing that a broker's start has written: give another folder, or "
            "delete that file"
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step: whoever reads it sees the old text or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def user_folder(variable: str, below_home: str) -> Path:
    """The folder of this package in that of XDG's `variable`, else in the one below the home.

    Raises:
        ConfigError: `variable` is not set, and the user has no home, as in some containers.
    """
    root = os.environ.get(variable)
    try:
        folder = Path(root) if root else Path.home() / below_home
    except RuntimeError:
        allowed = "this user has no home, so HOME or this has to name a folder to write to"
        raise ConfigError(variable, None, allowed) from None
    return folder / "pyspark-kafkaproto"
