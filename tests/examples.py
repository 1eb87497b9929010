"""How many inputs Hypothesis draws: all in tests/run.sh, a fifth in plain pytest."""

from __future__ import annotations

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
