"""Which rows a batch says that it has."""

from __future__ import annotations

from array import array

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch, Rows, Span, span_of


def picked(*rows):
    return memoryview(array("i", rows))


SPANS = {
    "rows in a row": Span(Rows(100), None, 3, 7),
    "rows of a partition": Span(Rows(100), picked(1, 4, 9, 11), 1, 3),
    "in any order": Span(Rows(100), picked(9, 4, 11), 0, 3),
    "of a topic": Span(Rows(100, picked(2, 5, 8, 9)), None, 1, 4),
    "of a topic's partition": Span(Rows(100, picked(2, 5, 8, 9)), picked(3, 0, 1), 0, 3),
    "of letters": span_of([7, 3, 12]),
    "one": Span(Rows(100), None, 3, 4),
}


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
def test_the_bounds_of_rows_are_those_of_their_numbers(span):
    numbers = list(span.numbers())
    assert span.bounds() == (min(numbers), max(numbers))


def batch(*spans):
    count = sum(span.stop - span.start for span in spans)
    return Batch(order=(0,), data=b"x" * 70, records=count, base_sequence=0, spans=list(spans))


def test_a_batch_names_its_rows():
    assert str(batch(SPANS["one"])) == "row 103 (70 bytes)"
    assert str(batch(SPANS["in any order"])) == "3 rows, 104 to 111 (70 bytes)"
    assert str(batch(SPANS["of letters"], SPANS["one"])) == "4 rows, 3 to 103 (70 bytes)"
