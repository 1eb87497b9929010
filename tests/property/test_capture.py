"""Damaged captures: no crash, no hang, bounded memory, and no secret in what is shown.

A seed and a size: the long run takes a million.
"""

import io
import json
import random
import re
import time
import tracemalloc
from pathlib import Path

import pytest

from pyspark_kafkaproto.capture import Limits, Note, open_capture, read_messages
from pyspark_kafkaproto.capture.page import Page
from pyspark_kafkaproto.capture.report import as_json, detail_lines, line, note_line
from pyspark_kafkaproto.capture.selection import Selection
from pyspark_kafkaproto.errors import UnreadableCapture
from tests.unit.capture.damage import damaged, originals

SEED = 20261121
_LIMITS = Limits(buffered_bytes=1 << 20, connections=8)


def show(data):
    """Everything that can be shown of a capture; its size in characters."""
    shown = 0
    page = Page("damaged")
    try:
        reader = open_capture(io.BytesIO(data))
    except UnreadableCapture as error:
        return len(str(error))
    for item in read_messages(reader, limits=_LIMITS):
        if isinstance(item, Note):
            shown += len(note_line(item))
            continue
        chosen = Selection().choose(item)
        shown += len(line(item, chosen.found)) + sum(map(len, detail_lines(item)))
        shown += len(json.dumps(as_json(item, with_fields=True)))
        page.add(item, chosen.found)
    return shown + len(page.html())


def run(seed, count, lines_only=False):
    rng = random.Random(seed)
    kinds = originals()
    for number in range(count):
        data = damaged(rng, rng.choice(kinds))
        # The processor's time: a process that was paused, or found the machine busy, does not hang.
        began = time.process_time()
        try:
            if lines_only and number % 8:
                for item in read_messages(open_capture(io.BytesIO(data)), limits=_LIMITS):
                    note_line(item) if isinstance(item, Note) else line(item)
            else:
                show(data)
        except UnreadableCapture:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}, capture {number}") from error
        assert time.process_time() - began < 10, f"seed {seed}, capture {number} hangs"


def test_the_original_shows_no_secret():
    for original in originals():
        items = list(read_messages(open_capture(io.BytesIO(original))))
        messages = [item for item in items if not isinstance(item, Note)]
        assert len(messages) == 14
        texts = [text for message in messages for text in detail_lines(message)]
        assert any("<hidden>" in text for text in texts)
        assert "secret" not in "".join(texts)


@pytest.mark.slow
def test_damaged_captures_are_shown_as_far_as_they_go():
    run(SEED, 10_000, lines_only=True)


@pytest.mark.slow
def test_damaged_captures_need_little_memory():
    tracemalloc.start()
    try:
        run(SEED + 1, 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_million_damaged_captures(capsys):
    count, warm_up = 1_000_000, 1000
    run(SEED + 3, warm_up, lines_only=True)
    before = peak_bytes()
    run(SEED + 2, count, lines_only=True)
    after = peak_bytes()
    with capsys.disabled():
        grown = f"{(after - before) / 1e6:.1f} MB more than after {warm_up:,}"
        print(f"\n{count:,} damaged captures: a peak of {after / 1e6:.1f} MB, {grown}")
    assert after - before < 64 << 20


def peak_bytes():
    """The largest resident size that this process has had."""
    status = Path("/proc/self/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) << 10
