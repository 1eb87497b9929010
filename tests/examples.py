"""How much is tried: all in tests/run.sh, a part in plain pytest."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings

# The profiles' names, for --hypothesis-profile.
FULL = "full"
QUICK = "quick"

_EXAMPLES = 100

# Marks whose tests are not asked for; tests/conftest.py fills it before tests are collected.
left_out: set[str] = set()

# An example that waited for a busy machine is no find.
settings.register_profile(FULL, deadline=None, max_examples=_EXAMPLES)
settings.register_profile(QUICK, deadline=None, max_examples=_EXAMPLES // 5)


def examples(count: int) -> settings:
    """For a test that draws another number than 100: `count` in full, its share otherwise."""
    return settings(max_examples=max(1, count * settings().max_examples // _EXAMPLES))


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """For `parametrize`: plain pytest takes the first `count`, as the others are marked slow.

    A plain tuple is a value for each of several names.
    """
    some = iter(values)
    return [*islice(some, count), *marked("slow", some)]


def marked(mark: str, values: Iterable[Any]) -> list[Any]:
    """For `parametrize`: `values` with the mark; the first alone where it is left out.

    Each process of plain pytest would make thousands of tests, to run none of them. The first
    shows that there are some: a test without any is a mistake, and an error.
    """
    kept = islice(values, 1) if mark in left_out else values
    packed = (value if type(value) is tuple else (value,) for value in kept)
    return [pytest.param(*each, marks=getattr(pytest.mark, mark)) for each in packed]
