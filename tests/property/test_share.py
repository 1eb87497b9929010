"""Laws of what a member of a share group holds.

Whatever is done with the records of an acquired range, in whatever order, what is said of each
offset is what was last wished for it, each is said once, and never before it was handed out. Of
any log, the rows that come out are those of acquired offsets, and all other acquired offsets are
gaps.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client.share.held import Acknowledge, Acquired, Held
from pyspark_kafkaproto.client.share.rows import Layout, helds_of, parts_of
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import CONTROL

PARTITION = TopicPartition("t", 0)
CONFIG = ClientConfig.parse({"bootstrap.servers": "broker-1:9092"})
FIRST, COUNT = 5, 40
GAP, RELEASE = 0, 2
LAYOUT = Layout(["offset", "value", "deliveryCount"])

spans = st.tuples(st.integers(0, COUNT + 10), st.integers(0, COUNT + 10)).map(sorted)
steps = st.tuples(
    st.sampled_from(["gap", "give", "take back", "say", "release", *Acknowledge]), spans
)


def said_of(held):
    """{offset: type} as a request has it, whose batches are in order."""
    found = {}
    before = -1
    for item in held.say():
        assert before < item.first <= item.last
        before = item.last
        count = item.last - item.first + 1
        types = item.types * count if len(item.types) == 1 else item.types
        found |= dict(zip(range(item.first, item.last + 1), types, strict=True))
    return found


@given(st.lists(steps, max_size=30))
def test_each_offset_is_said_as_it_was_wished_last(schedule):
    held = Held(Acquired(PARTITION, FIRST, FIRST + COUNT - 1, 1), b"")
    model = dict.fromkeys(range(FIRST, FIRST + COUNT), "coming")
    may_be_marked = {"given", "kept", *Acknowledge}

    def change(span, when, becomes):
        offsets = [at for at in range(span[0], span[1] + 1) if model.get(at) in when]
        model.update(dict.fromkeys(offsets, becomes))
        return bool(offsets)

    for what, span in schedule:
        if what == "gap":
            if {model.get(at) for at in range(span[0], span[1] + 1)} <= {"coming", None}:
                held.note_gaps(*span)
                change(span, {"coming"}, GAP)
        elif what == "give":
            held.give(*span)
            change(span, {"coming"}, "given")
        elif what == "take back":
            held.take_back(*span)
            change(span, {"given"}, "coming")
        elif what == "release":
            held.release_coming()
            change((0, FIRST + COUNT), {"coming"}, RELEASE)
        elif what == "say":
            expected = {at: mark for at, mark in model.items() if isinstance(mark, int)}
            assert held.has_unsaid == bool(expected)
            assert said_of(held) == expected
            for offset, mark in expected.items():
                model[offset] = "kept" if mark == Acknowledge.RENEW else "done"
        else:
            assert held.mark(what, *span) == change(span, may_be_marked, what)
        assert held.is_open == ("given" in model.values())
        assert held.is_done == (set(model.values()) == {"done"})


@st.composite
def logs(draw):
    """Batches as (base offset, deltas of their records, whether it is a marker)."""
    base, found = draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(1, 4))):
        deltas = draw(st.sets(st.integers(0, 12), min_size=1, max_size=8))
        is_marker = draw(st.integers(0, 4)) == 0
        found.append((base, sorted({0} if is_marker else deltas), is_marker))
        base += found[-1][1][-1] + 1 + draw(st.integers(0, 3))
    return found


def encoded(base, deltas, is_marker):
    if is_marker:
        marker = NewRecord(bytes(6), bytes([0, 0, 0, 1]))
        return encode_batch([marker], base_offset=base, attributes=CONTROL | 16, producer_id=7)
    records = [NewRecord(str(base + at).encode(), offset_delta=at) for at in deltas]
    return encode_batch(records, base_offset=base)


@given(logs(), st.data())
def test_rows_are_those_of_acquired_offsets_and_all_else_is_a_gap(log, data):
    end = log[-1][0] + log[-1][1][-1] + 1
    present = {base + at for base, deltas, is_marker in log for at in deltas if not is_marker}
    cuts = sorted(data.draw(st.sets(st.integers(log[0][0], end), min_size=2, max_size=8)))
    ranges = [
        (first, last - 1, data.draw(st.integers(1, 2)))
        for first, last in pairwise(cuts)
        if data.draw(st.booleans())
    ]
    if not ranges:
        return
    kind = ShareFetchResponse.Topic.Partition
    answer = kind(
        records=b"".join(encoded(*batch) for batch in log),
        acquired_records=tuple(
            kind.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in ranges
        ),
    )
    helds = helds_of(PARTITION, b"", answer)
    counts = {at: count for first, last, count in ranges for at in range(first, last + 1)}
    rows = []
    for part in parts_of(answer, helds, LAYOUT, CONFIG):
        part.batch.validate(full=True)
        part.held.give(part.first, part.last)
        rows += zip(*(column.to_pylist() for column in part.batch.columns), strict=True)
    expected = sorted(counts.keys() & present)
    assert rows == [(at, str(at).encode(), counts[at]) for at in expected]
    gaps = {at: mark for held in helds for at, mark in said_of(held).items()}
    assert gaps == dict.fromkeys(counts.keys() - present, GAP)
    for held in helds:
        held.accept_given()
    assert {at for held in helds for at in said_of(held)} == set(expected)
    assert all(held.is_done for held in helds)
