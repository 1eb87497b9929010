"""What recipes make: sound blocks of every kind, and now and then one wrong number."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, _kernel
from tests.fuzz import made
from tests.fuzz.flurry import changed


def decode(block):
    return _kernel.decode(block, start=0, stop=2**62, wanted=Columns.ALL)


@pytest.mark.parametrize("kind", [*range(5), *range(0xC0, 0xC8)])
def test_a_recipe_without_mistakes_makes_a_sound_block(kind):
    draw = Random(kind)
    for size in range(1, 400, 7):
        recipe = bytes([draw.randrange(16), kind, *draw.choices(range(0xC0), k=size)])
        assert decode(made.block_of(recipe)).rows


def test_what_is_changed_is_read_mostly():
    draw = Random(1)
    rows = refused = 0
    for size in (20, 60, 200, 600):
        for recipe in changed(draw.randbytes(size)):
            try:
                rows += decode(made.block_of(bytes(recipe))).rows > 0
            except CorruptRecords:
                refused += 1
    assert rows > refused > 0


def test_the_same_recipe_makes_the_same_block():
    recipe = Random(2).randbytes(300)
    assert made.block_of(recipe) == made.block_of(recipe)
