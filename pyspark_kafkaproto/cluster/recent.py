"""What is remembered of things that come and go for years: no more than so much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def with_latest(now: Mapping[_K, _V], before: Mapping[_K, _V], most: int) -> dict[_K, _V]:
    """`now`, and of what else was known before the latest `most`, in front of it."""
    others = [(key, value) for key, value in before.items() if key not in now]
    return {**dict(others[-most:]), **now}
