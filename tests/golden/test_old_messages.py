"""Messages of magic 0 and 1, as an old client wrote them and brokers made them anew."""

import pytest

from pyspark_kafkaproto.records import Columns, _kernel, reference
from tests.examples import first
from tests.golden import record_files
from tests.golden.decoded_rows import read_rows
from tests.golden.test_record_batches import each_implementation

OLD = [name for name in record_files.NAMES if record_files.magic_of(name) < 2]
ANSWERS = [name for name in OLD if name.startswith("kafka-fetch")]
NO_TIMESTAMP_TYPE = -1  # Java's TimestampType.NO_TIMESTAMP_TYPE: what Spark shows


def known_rows(name):
    rows = record_files.known_rows(name)
    if record_files.magic_of(name) == 0:
        return [row._replace(timestamp_type=NO_TIMESTAMP_TYPE) for row in rows]
    return rows


def test_there_are_files_of_both_magics_and_every_old_codec():
    kinds = {tuple(name.partition("-magic")[2].split("-")[:2]) for name in OLD}
    assert kinds >= {(magic, c) for magic in "01" for c in ("none", "gzip", "snappy", "lz4")}


@each_implementation
@pytest.mark.parametrize("name", first(4, [name for name in OLD if name not in ANSWERS]))
def test_what_an_old_client_sent(name, implementation):
    assert read_rows(implementation, record_files.read_bytes(name)) == known_rows(name)


@each_implementation
@pytest.mark.parametrize("name", first(8, ANSWERS))
def test_what_a_broker_answers_an_old_client(name, implementation):
    """As far as messages are whole: what does not fit is cut, and asked for again."""
    block = record_files.read_bytes(name)
    seen = implementation.skim(block)
    known = [row for row in known_rows(name) if row.offset < seen.next_offset]
    assert known
    assert read_rows(implementation, block) == known
    assert len(known) == len(known_rows(name)) or seen.pos + seen.missing_bytes > len(block)


@pytest.mark.parametrize("name", first(9, OLD))
def test_both_see_the_same_headers(name):
    block = record_files.read_bytes(name)
    assert _kernel.skim(block) == reference.skim(block)


@each_implementation
def test_formats_mixed_in_one_block(implementation):
    """A log from before two upgrades; the offsets of the later ones are moved up."""
    names = ("kafka-fetch-v1-magic0-snappy", "kafka-fetch-v3-magic1-gzip-log-append-time",
             "java-producer-magic2-zstd")  # fmt: skip
    block, known, base = b"", [], 0
    for name in names:
        answer = record_files.read_bytes(name)
        end = implementation.skim(answer).pos
        block += moved(answer[:end], base)
        known += [row._replace(offset=row.offset + base) for row in known_rows(name)]
        base = known[-1].offset + 1
    assert read_rows(implementation, block) == known


def moved(block, by):
    """`block` with `by` added to the offset of each batch."""
    out, pos = bytearray(block), 0
    while pos < len(out):
        offset = int.from_bytes(out[pos : pos + 8])
        out[pos : pos + 8] = (offset + by).to_bytes(8)
        pos += 12 + int.from_bytes(out[pos + 8 : pos + 12])
    return bytes(out)


@each_implementation
@pytest.mark.parametrize("name", first(8, ANSWERS))
def test_the_headers_of_an_answer_say_where_reading_ends(name, implementation):
    """A broker gives a wrapper the offset of its last message, at the start of a log too."""
    block = record_files.read_bytes(name)
    decoded = implementation.decode(block, start=0, stop=2**62, wanted=Columns.OFFSET)
    seen = implementation.skim(block)
    assert (decoded.next_offset, decoded.pos) == (seen.next_offset, seen.pos)
