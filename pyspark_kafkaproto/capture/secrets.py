"""What nobody is to see: the bytes of secrets in a frame, and the frame without them.

Passwords and tokens of SASL, delegation tokens, values of configurations, SCRAM credentials:
what the declarations call secret, and whole bodies that might hold one and cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_kafkaproto.wire.trace import Node


def secret_ranges(root: Node) -> list[tuple[int, int]]:
    """Where secrets stand in a frame, half-open, in the order of the fields."""
    return [(node.start, node.stop) for node in root.walk() if node.is_secret and node.start >= 0]


def without(frame: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The frame with the content of these ranges zeroed; its size stays."""
    shown = bytearray(frame)
    for start, stop in ranges:
        end = min(stop, len(shown))
        shown[start:end] = bytes(max(0, end - start))
    return bytes(shown)
