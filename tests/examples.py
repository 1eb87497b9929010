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
    taken = list(islice(some, count))
    packed = (value if type(value) is tuple else (value,) for value in some)
    return [*taken, *(pytest.param(*each, marks=pytest.mark.slow) for each in packed)]
