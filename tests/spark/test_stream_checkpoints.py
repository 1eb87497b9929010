"""Checkpoints that go from Spark's own connector to ours and back: no row is lost or doubled."""

from __future__ import annotations

import pytest

from tests.spark.streaming import NOW, OURS, SOON, THEIRS, Place, failure_of, numbered, put

pytestmark = pytest.mark.spark


@pytest.fixture
def place(spark, broker, tmp_path):
    return lambda name: Place(spark, broker.bootstrap_servers, tmp_path / name)


def test_query_goes_on_under_the_other_source_over_a_batch_that_was_only_logged(
    broker, new_topic, place
):
    topic = new_topic()
    servers = broker.bootstrap_servers
    here = place("moved")
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40}
    for round_number, source in enumerate((THEIRS, OURS, THEIRS)):
        begin = 100 * round_number
        put(servers, topic, 0, numbered(begin, begin + 50))
        put(servers, topic, 0, numbered(begin + 50, begin + 100))
        here.run(source, **options)
        assert here.values() == numbered(0, begin + 100)
        # As a kill leaves it: the next source runs the last batch again.
        assert here.forget_last_batch() > 0
        assert here.values() != numbered(0, begin + 100)
    here.run(OURS, **options)
    assert here.values() == numbered(0, 300)


def test_ids_of_topics_are_nothing_to_the_other_source(broker, new_topic, place):
    """It reads over them, logs none, and they are there again from our next batch on."""
    topics = sorted([new_topic(), new_topic()])
    servers = broker.bootstrap_servers
    here = place("ids")
    options = {"subscribe": ",".join(topics), "startingOffsets": "earliest"}
    with_ids = options | {"findLossBetweenRuns": True}
    marks = []
    for number, source in enumerate((OURS, THEIRS, OURS, OURS, THEIRS)):
        put(servers, topics[0], 0, numbered(10 * number, 10 * number + 10))
        here.run(source, **(with_ids if source == OURS else options))
        assert here.values() == numbered(0, 10 * number + 10)
        marks.append([name.partition(":")[0] for name in here.logged() if ":" in name])
        if number in {0, 3}:  # as a kill leaves it: the next source runs the last batch again
            here.forget_last_batch()
    assert marks == [topics, [], topics, topics, []]


@pytest.mark.parametrize(("before", "after"), [(THEIRS, OURS), (OURS, THEIRS)])
def test_the_first_batch_after_the_change_may_be_empty(broker, new_topic, place, before, after):
    """Both write the same offsets with other blanks, and the engine compares texts."""
    topic = new_topic()
    here = place("still")
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    put(broker.bootstrap_servers, topic, 0, numbered(0, 10))

    def batches():
        return len(list((here.checkpoint / "commits").glob("[0-9]*")))

    here.run(before, **options)
    found = [batches()]
    for source in (before, after, after):
        here.run(source, **options)
        found.append(batches())
    assert [number - found[0] for number in found] == [0, 0, 1, 1]
    assert here.values() == numbered(0, 10)


def test_batch_0_alone_starts_where_the_other_source_says(broker, new_topic, place):
    """What a checkpoint holds before batch 1: the end of batch 0, not its start."""
    topic = new_topic()
    servers = broker.bootstrap_servers
    put(servers, topic, 0, numbered(0, 10))
    early, late = place("early"), place("late")
    early.run(THEIRS, subscribe=topic, startingOffsets="earliest")
    late.run(THEIRS, subscribe=topic)
    back, back_late = place("back"), place("back-late")
    back.run(OURS, subscribe=topic, startingOffsets="earliest")
    back_late.run(OURS, subscribe=topic)
    assert back.forget_last_batch() == 1, "batch 0 is empty, and logs where the query starts"
    for here in (early, late, back, back_late):
        assert here.forget_last_batch() == 0
        (here.checkpoint / "offsets" / "1").unlink(missing_ok=True)
        (here.checkpoint / "offsets" / ".1.crc").unlink(missing_ok=True)
    put(servers, topic, 0, numbered(10, 20))
    # A start that stays is resolved to the same offsets by both.
    early.run(OURS, subscribe=topic, startingOffsets="earliest")
    back.run(THEIRS, subscribe=topic, startingOffsets="earliest")
    assert early.values() == back.values() == numbered(0, 20)
    # One that moves: ours goes on where the batch ends that is logged, Spark's own fails.
    late.run(OURS, subscribe=topic)
    assert late.values() == numbered(10, 20)
    text = failure_of(back_late.start(THEIRS, subscribe=topic, trigger=NOW, **SOON))
    assert "offset was changed from 20 to 10" in text
    back_late.run(OURS, subscribe=topic)
    assert back_late.values() == numbered(10, 20)


@pytest.mark.parametrize("source", [THEIRS, OURS])
def test_a_logged_batch_is_run_again_though_its_topic_is_not_to_be_read_any_more(
    broker, new_topic, place, source
):
    """The options were changed since; the loss that is borne is of what comes behind the batch."""
    old, new = new_topic(), new_topic()
    servers = broker.bootstrap_servers
    here = place(source)
    for begin in (0, 10):
        put(servers, old, 0, numbered(begin, begin + 10))
        here.run(source, subscribe=old, startingOffsets="earliest")
    here.forget_last_batch()
    put(servers, new, 0, numbered(20, 25))
    here.run(source, subscribe=new, failOnDataLoss="false", **SOON)
    assert here.values() == numbered(0, 25)
