"""Every kept input of the fuzzer, and every sound one it begins with, once: the laws hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_kept_inputs(target):
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    for path in inputs:
        try:
            TARGETS[target](path.read_bytes())
        except BaseException:
            print(path)
            raise


@pytest.mark.parametrize("target", TARGETS)
def test_sound_inputs(target):
    for seed in SEEDS[target]():
        TARGETS[target](seed)
