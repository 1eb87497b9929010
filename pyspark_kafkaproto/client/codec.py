"""Which codec records go through: a slow one is said, by whoever reads or writes first."""

from __future__ import annotations

import logging
from functools import cache

from pyspark_kafkaproto.records import IMPLEMENTATION, WHY_PURE

_log = logging.getLogger("pyspark_kafkaproto")


@cache
def say_which_codec() -> None:
    """Warn, once, when records are decoded in plain Python."""
    if IMPLEMENTATION == "pure":
        _log.warning(
            "records are decoded in plain Python, about 150 times slower than by the native codec "
            "(%s). Where it was not built: install a C compiler (Debian: apt install gcc "
            "python3-dev; macOS: xcode-select --install), then pyspark-kafkaproto again",
            WHY_PURE,
        )
