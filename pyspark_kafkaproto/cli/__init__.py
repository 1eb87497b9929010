"""The command line `kafkaproto`: a file per group of commands, thin over the rooms below.

This module is what the installed script calls. It imports nothing that the extra `[cli]` brings
before it has seen that it is there, and no command ever imports pyspark.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from io import RawIOBase, TextIOWrapper
from pathlib import Path

from pyspark_kafkaproto.cli.interrupts import heed_sigterm, interrupted_code


def main() -> None:
    """Run the command line; one plain line when click or rich is not installed."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(
            f"kafkaproto: the command line needs {' and '.join(missing)}: "
            "pip install 'pyspark-kafkaproto[cli]'"
        )
    # numpy comes with pyarrow. Threads of its BLAS, of no use here, spin as they start: for a tenth
    # of a second they have a processor that the broker or another command may want.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        heed_sigterm()
        from pyspark_kafkaproto.cli.root import kafkaproto  # noqa: PLC0415 - click is sure now
    except KeyboardInterrupt:  # while it starts; later the command says what it does then
        sys.exit(interrupted_code())
    _fill_closed()
    _prepare_output()
    kafkaproto()


def _fill_closed() -> None:
    """Streams that were closed (`<&-`) are empty: their numbers would go to the next connection."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  to the end
            setattr(sys, name, stream)


def _prepare_output() -> None:
    """Standard output that takes all that is written, or fails."""
    out = sys.stdout
    if isinstance(out, TextIOWrapper):
        if isinstance(out.buffer, RawIOBase):
            # PYTHONUNBUFFERED: of what a pipe or a disk takes in part, the rest would be lost.
            number, encoding = out.fileno(), out.encoding
            sys.stdout = out = open(number, "w", 1, encoding, closefd=False)  # noqa: SIM115
        # Names come from anywhere; a terminal or a file of few characters is no reason to fail.
        out.reconfigure(errors="backslashreplace")
