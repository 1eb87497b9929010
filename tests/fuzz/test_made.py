"""What recipes make: sound blocks of every kind, different contents, and now and then a mistake."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, _kernel
from tests.examples import first
from tests.fuzz import made, oracle
from tests.fuzz.flurry import changed
from tests.fuzz.oracle import LIMIT_BYTES, options_of

SOUND = range(0xF8)  # bytes that ask for no mistake
ALL = {"start": 0, "stop": 2**62, "wanted": Columns.ALL}


def sound_recipe(kind, size):
    draw = Random(f"{kind} {size}")
    return bytes([draw.randrange(16), kind, *draw.choices(SOUND, k=size)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", first(2, [0, 0xC0, *range(1, 5), *range(0xC1, 0xC8)]))
def test_a_recipe_without_mistakes_makes_a_sound_block(kind):
    headers = 0
    for size in range(1, 400, 7):
        block = made.block_of(sound_recipe(kind, size))
        decoded = _kernel.decode(block, **ALL)
        assert decoded.pos == len(block)  # to its end: nothing of it counts as cut
        assert decoded.rows >= decoded.batches > 0
        headers += decoded.headers.pairs
    assert headers or kind >= 0xC0  # messages of old formats have none


@pytest.mark.slow
def test_four_of_ten_changed_recipes_are_read_and_some_refused():
    draw = Random(1)
    rows = refused = 0
    for size in (20, 60, 200, 600):
        for recipe in changed(draw.randbytes(size)):
            try:
                rows += _kernel.decode(made.block_of(bytes(recipe)), **ALL).rows > 0
            except CorruptRecords:
                refused += 1
    assert rows > 0.4 * (rows + refused)
    assert refused


def test_a_decoder_that_mixes_contents_up_is_found(monkeypatch):
    def swapped(module, block, **options):
        found = real(module, block, **options)
        return (*found[:-3], found[-2], found[-3], found[-1]) if module is _kernel else found

    real = oracle.outcome
    monkeypatch.setattr(oracle, "outcome", swapped)
    nine = bytes([11])  # the place of the size 9: a key and a value alike in all but their bytes
    recipe = bytes([0, 0, 0, 0, 0, 0, 0]) + nine * 2
    with pytest.raises(AssertionError):
        oracle.assert_alike(made.block_of(recipe), **options_of(b"\x09\x00\xff"))


def test_what_is_made_is_small():
    largest = bytes([0, 0, 0, 0, 0, 15]) + bytes([34]) * 2000
    assert LIMIT_BYTES < len(made.block_of(largest)) < 3 * LIMIT_BYTES
