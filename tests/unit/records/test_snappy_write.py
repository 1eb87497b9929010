"""The native encoder's snappy: read byte by byte, and by the package's decoder and ours."""

from __future__ import annotations

import random

import cramjam
import pytest

from pyspark_kafkaproto.records import compression
from tests.unit.records.packing import packed
from tests.unit.records.snappy import Copy, blocks_of, elements_of, unpacked

BLOCK_BYTES = 32 << 10
DRAWN = random.Random(7).randbytes(3 * BLOCK_BYTES)


def elements(value: bytes) -> list[bytes | Copy]:
    """All there is in the only block of a batch of `value`, once that is read right."""
    content, stream = packed(value)
    (block,) = blocks_of(stream)
    assert unpacked(block) == content
    return elements_of(block)[1]


def check(value: bytes) -> None:
    content, stream = packed(value)
    blocks = blocks_of(stream)
    parts = [unpacked(block) for block in blocks]
    assert b"".join(parts) == content
    assert {len(part) for part in parts[:-1]} <= {BLOCK_BYTES}
    assert 0 < len(parts[-1]) <= BLOCK_BYTES
    assert [bytes(cramjam.snappy.decompress_raw(block)) for block in blocks] == parts


CONTENTS = {
    "one byte": bytes,
    "two bytes in turn": lambda size: b"ab" * (size // 2),
    "seven bytes in turn": lambda size: b"abcdefg" * (size // 7),
    "words": lambda size: b" ".join(random.Random(size).choices(WORDS, k=size))[:size],
    "random": lambda size: DRAWN[:size],
    "halves": lambda size: DRAWN[: size // 2] * 2,
}
WORDS = [b"group", b"of", b"the partition", b"offset", b"7", b"committed", b"leader epoch"]


@pytest.mark.parametrize("content", CONTENTS)
def test_every_small_size(content):
    for size in range(300):
        check(CONTENTS[content](size))


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("blocks", [1, 2])
def test_sizes_about_whole_blocks(content, blocks):
    """A record has some ten bytes around its value."""
    for size in range(blocks * BLOCK_BYTES - 30, blocks * BLOCK_BYTES + 30):
        check(CONTENTS[content](size))


def test_a_block_is_snappy_javas():
    _, stream = packed(DRAWN)
    sizes = [elements_of(block)[0] for block in blocks_of(stream)]
    assert sizes[:-1] == [BLOCK_BYTES] * 3


@pytest.mark.parametrize("size", [*range(8, 20), *range(60, 80), *range(120, 140), 1000])
def test_what_comes_again_is_copies_of_every_size(size):
    again = DRAWN[:size]
    head, *copies, tail = elements(again + DRAWN[1000:1100] + again + DRAWN[1200:1230])
    assert isinstance(head, bytes)
    assert isinstance(tail, bytes)
    assert {copy.distance for copy in copies} == {size + 100}
    assert sum(copy.size for copy in copies) == size
    assert all(4 <= copy.size <= 64 for copy in copies)
    assert len(copies) == -(-size // 64)


@pytest.mark.parametrize("distance", [1, 2, 3, 7, 8, 16, 2047, 2048, 20_000])
@pytest.mark.parametrize("size", [8, 11, 12, 64])
def test_what_comes_again_is_found_near_and_far(distance, size):
    start = DRAWN[: min(distance, 64)] + bytes(max(0, distance - 64))
    again = (start * size)[:size]
    found = elements(start + again + DRAWN[-50:])
    assert Copy(distance, size) in found


def test_what_comes_again_right_after_a_copy_is_one_too():
    first, second, between = DRAWN[:40], DRAWN[100:140], DRAWN[200:300]
    found = elements(first + between + second + DRAWN[300:400] + first + second + DRAWN[-50:])
    assert [element.size for element in found if isinstance(element, Copy)] == [40, 40]


@pytest.mark.parametrize("size", [*range(8, 24), 64, 100])
def test_what_comes_again_at_the_end_is_a_copy_up_to_its_last_byte(size):
    again = DRAWN[:40] + DRAWN[100 : 100 + size] + b"\x00"  # which is how a record ends, too
    found = elements(again + DRAWN[300:350] + again[:-1])
    copies = [element for element in found if isinstance(element, Copy)]
    assert sum(copy.size for copy in copies) == len(again)
    assert isinstance(found[-1], Copy)


@pytest.mark.parametrize(("size", "copies"), [(4, []), (5, [Copy(14, 5)])])
def test_four_bytes_alone_are_not_looked_for(size, copies):
    again, between = DRAWN[:size], DRAWN[100 : 114 - size]
    found = elements(again + between + again + DRAWN[200:240])
    assert [element for element in found if isinstance(element, Copy)] == copies


def test_what_never_comes_again_is_not_much_longer():
    content, stream = packed(DRAWN)
    assert len(stream) <= len(content) + 60


def test_after_much_that_never_comes_again_most_places_are_passed_over():
    """That makes it fast where there is nothing to save."""
    found = 0
    for place in range(20_000, 20_040):
        again = DRAWN[:place] + DRAWN[20:28] + DRAWN[place + 8 : 30_000]
        found += any(isinstance(element, Copy) for element in elements(again))
    assert 0 < found < 10


@pytest.mark.parametrize("size", [500, 5000, 300_000])
def test_it_is_nearly_as_small_as_the_packages(size):
    draw = random.Random(3)
    value = b"".join(
        b'{"id":%d,"page":"%s","trace":"%s"}\n'
        % (draw.getrandbits(30), draw.choice(WORDS), draw.randbytes(8).hex().encode())
        for _ in range(size // 60)
    )
    content, stream = packed(value)
    assert len(stream) <= 1.02 * len(compression.compress(compression.SNAPPY, content))
