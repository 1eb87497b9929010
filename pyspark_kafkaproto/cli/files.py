"""Files that a command reads or writes: one rule for what cannot be.

One that cannot be read, or not be opened to be written, is wrong usage (exit code 2): it is another
file that is to be named. What does not fit on a disk has failed (1).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click

from pyspark_kafkaproto.errors import ConfigError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_writable(option: str, file: Path) -> None:
    """Refuse, before any work is done for it, a file that cannot be written.

    Raises:
        ConfigError: there is no such folder, or this user may not write there.
    """
    if not file.parent.is_dir():
        raise ConfigError(option, str(file), f"there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ConfigError(option, str(file), "it cannot be written: Permission denied")


def cannot_write(option: str, file: Path, error: OSError) -> Exception:
    """What to raise for the error of opening or writing `file`."""
    if error.errno in NO_ROOM or error.errno == errno.EIO:
        return click.ClickException(f"{file} cannot be written: {error.strerror}")
    return ConfigError(option, str(file), f"it cannot be written: {error.strerror}")


def cannot_read(option: str, file: str, error: OSError) -> ConfigError:
    """What to raise for the error of reading `file`."""
    return ConfigError(option, shown_name(file), f"it cannot be read: {error.strerror}")


def shown_name(file: str) -> str:
    """What a file is called; `-` is standard input."""
    return "standard input" if file == "-" else file
