"""Which codec records go through: a slow one is said, by whoever reads or writes first."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event

import pyspark_kafkaproto
from pyspark_kafkaproto.records import IMPLEMENTATION, WHY_PURE

_log = logging.getLogger("pyspark_kafkaproto")

_is_said = Event()
_HERE = Path(pyspark_kafkaproto.__file__).parent
_BUILD = (
    "Where it was not built: install a C compiler (Debian: apt install gcc python3-dev; "
    "macOS: xcode-select --install), then pyspark-kafkaproto again"
)


def say_which_codec() -> None:
    """Warn, once, when records are decoded in plain Python, with what to do about it."""
    if is_slow() and not _is_said.is_set():
        _is_said.set()
        _log.warning(
            "records are decoded in plain Python, about 150 times slower than by the native codec "
            "(%s). %s",
            WHY_PURE,
            _start_elsewhere() or _BUILD,
        )


def is_slow() -> bool:
    """Whether records are decoded in plain Python."""
    return IMPLEMENTATION == "pure"


def was_said() -> None:
    """Whoever gives this process its work has said it."""
    _is_said.set()


def _start_elsewhere() -> str:
    """What to do where these are the sources of a checkout, and the package is installed beside.

    Spark's workers, as `python -m` and `python -c`, look for modules in the folder they are started
    in first.
    """
    from importlib.metadata import distributions  # noqa: PLC0415 - what no fast process has to load

    if _has_kernel(_HERE):
        return ""
    for found in distributions(name="pyspark-kafkaproto"):
        installed = Path(str(found.locate_file("pyspark_kafkaproto")))
        if _has_kernel(installed):
            return (
                f"The installed package, in {installed.parent}, has it; these are the sources of "
                f"the checkout in {_HERE.parent}: start elsewhere, or pip install -e . there"
            )
    return ""


def _has_kernel(package: Path) -> bool:
    return any(package.glob("records/_kernel*.so"))
