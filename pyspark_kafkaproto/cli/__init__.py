"""The command line `kafkaproto`: a file per group of commands, thin over the rooms below.

This module is what the installed script calls. It imports nothing that the extra `[cli]` brings
before it has seen that it is there, and no command ever imports pyspark.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from io import TextIOWrapper


def main() -> None:
    """Run the command line; one plain line when click or rich is not installed."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(
            f"kafkaproto: the command line needs {' and '.join(missing)}: "
            "pip install 'pyspark-kafkaproto[cli]'"
        )
    from pyspark_kafkaproto.cli.group import kafkaproto  # noqa: PLC0415 - only now click is sure

    if isinstance(sys.stdout, TextIOWrapper):
        # Names come from anywhere; a terminal or a file of few characters is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    kafkaproto()
