"""Every kept input of the fuzzer, and every sound one it begins with, once: the laws hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent / "corpus"


# A capture takes as long as all others together, and tests/property reads damaged ones too.
each_target = pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=pytest.mark.slow if target == "capture" else ())
        for target in TARGETS
    ],
)


@pytest.mark.slow
@each_target
def test_kept_inputs(target):
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    for path in inputs:
        try:
            TARGETS[target](path.read_bytes())
        except BaseException:
            print(path)
            raise


@pytest.mark.slow
@each_target
def test_sound_inputs(target):
    for seed in SEEDS[target]():
        TARGETS[target](seed)
