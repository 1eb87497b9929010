"""How readers and writers travel to executors: pickled behind the driver's package version.

The version stands in front of everything else, so that an executor with another one says so instead
of failing somewhere inside, whatever changed between them. Whether the driver's codec is a slow one
goes along: it has said so, and not every worker needs to; one that is slow alone does.
"""

from __future__ import annotations

import pickle
from typing import Any

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.client.codec import is_slow, was_said
from pyspark_kafkaproto.errors import LocalProtocolError


def shipped(cls: type, *parts: object) -> tuple[Any, ...]:
    """What `__reduce__` returns for a reader or writer that `cls(*parts)` makes again."""
    return _unpacked, (__version__, pickle.dumps((is_slow(), cls, *parts)))


def _unpacked(version: str, payload: bytes) -> Any:
    if version != __version__:
        raise LocalProtocolError(
            f"the driver runs pyspark-kafkaproto {version}, this executor {__version__}: install "
            "the same version on both"
        )
    is_said, cls, *parts = pickle.loads(payload)  # noqa: S301 - Spark's own channel, pickled above
    if is_said:
        was_said()
    return cls(*parts)
