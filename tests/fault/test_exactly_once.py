"""A process dies after each request and each answer of an exactly-once write, one after the other.

Then it is run again, as Spark would, and a read_committed reader sees every row of a stream exactly
once, and all or none of a batch. CI takes some of the points at random, the long run all of them
(212 of a stream; -s shows each, and what became of it).
"""

from __future__ import annotations

import random
import uuid
from collections import Counter

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, decisions, read_batches
from pyspark_kafkaproto.client.batch_commit import recover
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.spark.write_options import parse_write_options
from tests.fault.dying import FailPoints
from tests.fault.micro_batches import Query
from tests.settled import wait_until_settled

pytestmark = [pytest.mark.fault, pytest.mark.broker]

PARTITIONS, TASKS, ROWS = 2, 2, 20
SEED = 9
_DECIDING_S = 5.0  # instead of 15
_SCHEMA = StructType([StructField("value", StringType())])


class Written:
    """What a topic should hold, and what readers see."""

    def __init__(self, servers, topic):
        self.servers, self.topic = servers, topic
        self.expected = Counter()
        self.turn = 0
        options = {
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "transactionalidprefix": topic,
            "decisiontopic": f"{topic}-decisions",
        }
        self.options = parse_write_options(options, _SCHEMA)

    def new_rows(self):
        self.turn += 1
        return [f"{self.turn}-{n}" for n in range(ROWS)]

    def seen(self):
        """What a read_committed reader sees, once nothing is open any more."""
        config = ClientConfig.parse(
            {"bootstrap.servers": self.servers, "isolation.level": "read_committed"}
        )
        partitions = {TopicPartition(self.topic, n) for n in range(PARTITIONS)}
        wait_until_settled(self.servers, partitions)
        task = ReadTask(tuple(OffsetRange(*item, 0, None) for item in partitions))
        found = Counter()
        for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
            found.update(value.decode() for value in batch.column(0).to_pylist())
        return found

    def compare(self):
        seen = self.seen()
        missing, more = self.expected - seen, seen - self.expected
        assert (missing, more) == (Counter(), Counter())

    def recover(self):
        config = ClientConfig.parse({"bootstrap.servers": self.servers})
        log = DecisionLog(config, f"{self.topic}-decisions", self.topic)
        log.ensure_topic()
        return recover(log, "batch")


@pytest.fixture
def new_written(broker, new_topic):
    return lambda: Written(broker.bootstrap_servers, new_topic(PARTITIONS))


def new_query(written, tmp_path):
    return Query(written.options, FailPoints(tmp_path / "points"), str(uuid.uuid4()), TASKS)


def stream_turn(query, written):
    """A micro-batch, repeated until it comes through."""
    rows = written.new_rows()
    written.expected.update(rows)
    runs = 1
    while not query.micro_batch(written.turn, rows):
        runs += 1
        assert runs < 4, query.why
        query.points.revive()
    written.compare()
    return f"{runs} runs"


def batch_turn(query, written):
    """A job that is not repeated: recovered, it has written all or nothing."""
    rows = written.new_rows()
    came_through = query.job(rows)
    query.points.revive()
    recovered = written.recover()
    count = sum(written.seen()[row] for row in rows)
    assert count in ({ROWS} if came_through else {0, ROWS})
    if count:
        written.expected.update(rows)
    written.compare()
    state = "through" if came_through else "failed"
    return f"{state}{', recovered' if recovered else ''}, {count} rows"


def points_of(query, written, turn):
    """Every step of a turn as it mostly is: the topic of decisions is there, nothing asked twice.

    On a busy machine a broker may have to be asked again; such a step does not come every time.
    """
    seen = []
    for _ in range(3):
        query.points.arm()
        turn(query, written)
        seen.append(query.points.steps())
    steps = [step for step in seen[1] if step in seen[2]]
    return [f"{step} {scope}" for step in steps for scope in ("all", "worker")]


def warm_up(written, tmp_path, turn):
    """Have all imported and compiled that is so at first use, to be there in forked processes."""
    query = new_query(written, tmp_path)
    query.points.arm()
    with query.in_this_process():
        turn(query, written)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("most", [8, pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize("turn", [stream_turn, batch_turn], ids=["stream", "batch"])
def test_a_process_dies_at_each_step(new_written, tmp_path, monkeypatch, turn, most):
    if most is not None:  # what a dead driver was deciding is waited for until it times out
        monkeypatch.setattr(decisions, "_TIMEOUT_S", _DECIDING_S)
    warm_up(new_written(), tmp_path, turn)
    written = new_written()
    query = new_query(written, tmp_path)
    points = points_of(query, written, turn)
    wanted = most or len(points)
    hits = taken = 0
    for point in random.Random(SEED).sample(points, len(points)):
        if hits == wanted:
            break
        taken += 1
        query.points.arm(point)
        outcome = turn(query, written)
        hits += query.points.was_hit
        print(f"{point}: {'hit' if query.points.was_hit else 'not met'}, {outcome}")
    print(f"{len(points)} points, {taken} taken, {hits} hit")
    assert hits == wanted
    assert taken <= wanted + 2  # one may be a retry's, which a busy broker made necessary
