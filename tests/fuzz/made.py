"""The target `made`: blocks that a recipe makes, sound but for a few numbers.

Bytes that are changed at random are refused nearly always, at the first length that does not fit.
Here the input says what to make: how many batches, their format and codec, each record's numbers
and sizes. All lengths and counts agree, but where the recipe takes one of them to be another.
What it makes is small: the memory that making takes is not to hide what decoding takes.
"""

from __future__ import annotations

from random import Random

from pyspark_kafkaproto.records.compression import compress
from pyspark_kafkaproto.records.encoding import zigzag
from tests.fuzz.oracle import LIMIT_BYTES
from tests.unit.records import messages as old
from tests.unit.records.batches import raw_batch, raw_record

BATCHES_MAX = 3
RECORDS_MAX = 16
FIELD_MAX_BYTES = 20_000
CONTENT_MAX_BYTES = 2 * LIMIT_BYTES  # of all keys, values and headers: enough to be refused for

# Half of it does not compress. Contents begin at different places: no two of a size are alike.
_FILLER = Random(7).randbytes(FIELD_MAX_BYTES // 2) + bytes(FIELD_MAX_BYTES // 2)
_STARTS = 1 << 10
_SIZES = (
    *(-1, 0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 62, 63, 64, 65, 66),
    *(100, 100, 127, 128, 129, 255, 256, 1000, 8191, 8192, FIELD_MAX_BYTES),
)
_NUMBERS = (0, 0, 1, -1, 2, -2, 63, 64, -64, -65, 127, 128, 255, 8191, 8192, -8192, -8193, 2**20)
_FAR_NUMBERS = (
    *(-(2**20), 2**27, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**35, 2**40, 2**49),
    *(-(2**49), 2**56, 2**62, -(2**62), 2**63 - 1, -(2**63)),
)
_SOUND_BELOW = 0xF8  # a byte of the recipe from here on makes something wrong


class Recipe:
    """The bytes of an input, one decision after the other; zeros when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0
        self._left_bytes = CONTENT_MAX_BYTES

    @property
    def is_over(self) -> bool:
        return self._pos >= len(self._data)

    def byte(self) -> int:
        self._pos += 1
        return self._data[self._pos - 1] if self._pos <= len(self._data) else 0

    def number(self) -> int:
        draw = self.byte()
        numbers = _NUMBERS if draw < _SOUND_BELOW else _FAR_NUMBERS
        return numbers[draw % len(numbers)]

    def content(self) -> bytes | None:
        size = min(_SIZES[self.byte() % len(_SIZES)], self._left_bytes)
        if size < 0:
            return None
        self._left_bytes -= size
        start = 7 * self._pos % _STARTS
        return _FILLER[start : start + size]

    def wrong(self) -> int | None:
        """A number that stands for a right one, seldom."""
        return self.number() if self.byte() >= _SOUND_BELOW else None


def block_of(data: bytes) -> bytes:
    """The block that a recipe makes."""
    recipe = Recipe(data)
    block, base_offset = b"", recipe.byte() & 0x0F
    for _ in range(BATCHES_MAX):
        kind = recipe.byte()
        if kind < 0xC0:
            made, count = _batch(recipe, kind % 5, base_offset)
        else:
            made, count = _messages(recipe, kind & 1, kind >> 1 & 3, base_offset)
        block, base_offset = block + made, base_offset + count
        if recipe.is_over:
            break
    return block


def _turns(recipe: Recipe) -> range:
    return range(1 + recipe.byte() % RECORDS_MAX)


def _batch(recipe: Recipe, codec: int, base_offset: int) -> tuple[bytes, int]:
    attributes = recipe.byte()
    # Few control batches: none of their records is a row.
    attributes &= 0x78 if attributes >= _SOUND_BELOW else 0x58
    first_ms, gap = recipe.number(), recipe.byte() & 3
    records = [_record(recipe, index) for index in _turns(recipe)]
    count = len(records)
    wrong_count, wrong_last = recipe.wrong(), recipe.wrong()
    batch = raw_batch(
        compress(codec, b"".join(records)),
        count if wrong_count is None else _as_int32(wrong_count),
        attributes=attributes | codec,
        base_offset=base_offset,
        last_offset_delta=count - 1 + gap if wrong_last is None else _as_int32(wrong_last),
        base_timestamp=first_ms,
        producer_id=1,  # one of those that `options_of` calls aborted
    )
    return batch, count + gap


def _as_int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _record(recipe: Recipe, index: int) -> bytes:
    """One record; in a wrong one a number is another, or longer than it need be."""
    parts = [b"\x00", zigzag(recipe.number()), zigzag(index)]
    parts += [*_field(recipe.content()), *_field(recipe.content())]
    pairs = max(0, recipe.byte() - 0xE0) & 7
    parts.append(zigzag(pairs))
    for _ in range(pairs):
        parts += [*_field(recipe.content() or b""), *_field(recipe.content())]
    wrong = recipe.byte()
    if wrong >= _SOUND_BELOW:
        numbers = 1, 2, 3, 5, 7, *range(8, len(parts), 2)  # where in `parts` they stand
        which = numbers[recipe.byte() % len(numbers)]
        parts[which] = zigzag(recipe.number()) if wrong & 1 else _padded(parts[which])
    record = b"".join(parts)
    return raw_record(record, recipe.wrong())


def _field(content: bytes | None) -> tuple[bytes, bytes]:
    return (zigzag(-1), b"") if content is None else (zigzag(len(content)), content)


def _padded(varint: bytes) -> bytes:
    """The same number in one byte more than it needs."""
    return varint[:-1] + bytes([varint[-1] | 0x80, 0])


def _messages(recipe: Recipe, magic: int, codec: int, base_offset: int) -> tuple[bytes, int]:
    """Messages of magic 0 or 1; with a codec inside one that holds them all."""
    attributes = recipe.byte() & old.LOG_APPEND_TIME * magic
    turns = _turns(recipe)
    # Offsets in a wrapper are relative from magic 1 on.
    first = 0 if codec and magic else base_offset
    content = b"".join(_message(recipe, magic, attributes, first + index) for index in turns)
    if not codec:
        return content, len(turns)
    wrong = recipe.wrong()
    last = base_offset + turns[-1] if wrong is None else wrong
    return old.wrapper(magic, last, content, codec=codec, attributes=attributes), len(turns)


def _message(recipe: Recipe, magic: int, attributes: int, offset: int) -> bytes:
    wrong = recipe.wrong()
    return old.message(
        magic,
        offset if wrong is None else wrong,
        recipe.content(),
        recipe.content(),
        timestamp_ms=recipe.number(),
        attributes=attributes,
    )
