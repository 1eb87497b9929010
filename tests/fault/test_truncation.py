"""A log that is cut off below what was read: the broker elected knows less than the one before.

What was read is gone then, and other records come at its offsets (KIP-320).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import StructType

from pyspark_kafkaproto import Consumer
from pyspark_kafkaproto.client import ReadTask
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.errors import BrokerError, DataLoss
from pyspark_kafkaproto.spark.options import lowered
from pyspark_kafkaproto.spark.stream.limited import LimitedStreamReader
from pyspark_kafkaproto.spark.stream.offsets import StreamOffsets
from pyspark_kafkaproto.spark.stream.options import parse_stream_options
from pyspark_kafkaproto.spark.stream.reader import KafkaStreamReader
from tests.fault.conftest import configs, wait_for_replicas
from tests.fault.reading import LENIENT, Reading, places_of, plan
from tests.fault.writing import wait_for_end, write
from tests.polled import polled_rows

pytestmark = pytest.mark.fault

KEPT = 1000  # on both replicas
LOST = 2000  # on one alone
AFTER = 4000  # written by the other one, at the offsets of those lost and beyond


class CutOff(NamedTuple):
    """Two reads that were half way through when the log was cut off below their positions.

    `member` opens a consumer of a group that had committed beyond that as well; `stream` a stream's
    source, of which a checkpoint has `logged`.
    """

    task: ReadTask
    strict: Reading
    lenient: Reading
    member: Callable[[str], Consumer]
    stream: Callable[..., KafkaStreamReader]
    logged: StreamOffsets


@pytest.fixture(scope="module")
def cut_off(trio, kafka, new_name):
    """Node 2 gets to know KEPT records, node 1 more; then node 1 dies and node 2 leads."""
    name = new_name()
    may_lose = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    kafka.create_topics([NewTopic(name, configs=may_lose, assignment={0: [1, 2]})])
    write(trio, name, KEPT, b"kept")
    trio.kill(2)
    write(trio, name, LOST, b"lost")
    wait_for_end(kafka, name, KEPT + LOST)
    task = plan(kafka, name)

    def member(reset: str) -> Consumer:
        servers = {"bootstrap.servers": trio.bootstrap_servers, "enable.auto.commit": "false"}
        group = {"group.id": name, "auto.offset.reset": reset}
        return Consumer(servers | group, {name}, columns=["offset", "value"])

    def stream(**given: str) -> KafkaStreamReader:
        servers = {"kafka.bootstrap.servers": trio.bootstrap_servers, "subscribe": name}
        options = parse_stream_options(lowered(servers | {"findLossBetweenRuns": "true"} | given))
        opened = LimitedStreamReader(StructType(), options)
        streams.callback(opened.stop)
        return opened

    with member("earliest") as first:
        polled_rows(first, KEPT + LOST)
        first.commit()
    with configs(trio) as new_config, ExitStack() as streams:
        readings = [Reading(task, new_config(), mode) for mode in (None, LENIENT)]
        for reading in readings:
            reading.go_on(KEPT + LOST // 2)
        logged = stream().initialOffset()
        trio.kill(1)
        trio.restart(2)
        wait_for_end(kafka, name, KEPT)
        write(trio, name, AFTER, b"after")
        yield CutOff(task, *readings, member, stream, logged)
    trio.restart(1)
    wait_for_replicas(trio, name, 2)


def test_a_member_that_goes_on_is_told_that_what_its_group_has_read_is_gone(cut_off):
    """By the leader epoch that was committed with the offset."""
    with cut_off.member("none") as consumer:
        with pytest.raises(BrokerError, match=rf"{KEPT + LOST} are gone.*offset {KEPT} only"):
            polled_rows(consumer, 1)
        assert consumer.positions == {}


def test_a_member_that_goes_on_reads_what_was_written_since(cut_off):
    with cut_off.member("latest") as consumer:
        rows = polled_rows(consumer, AFTER)
    assert [offset for offset, _ in rows] == list(range(KEPT, KEPT + AFTER))
    assert all(value.startswith(b"after") for _, value in rows)


def test_a_stream_that_goes_on_is_told_each_time_until_it_may_go_on(cut_off):
    """By the leader epoch that was logged with the offset: the log has grown beyond it since."""
    assert cut_off.logged[cut_off.task.ranges[0].topic] == {"0": KEPT + LOST}
    gone = rf"PARTITION_OFFSET_CHANGED\] .*was cut off at offset {KEPT} .*up to {KEPT + LOST}, are"
    for _ in range(2):
        with pytest.raises(DataLoss, match=gone):
            cut_off.stream().latestOffset(cut_off.logged, ReadMaxRows(LOST))
    end = cut_off.stream(failOnDataLoss="false").latestOffset(cut_off.logged, ReadMaxRows(LOST))
    assert cut_off.stream().latestOffset(end, ReadMaxRows(LOST)) == end


def test_rows_whose_records_are_gone_are_a_loss(cut_off):
    begun = list(cut_off.strict.rows)
    assert begun[-1][2].startswith(b"lost")
    with pytest.raises(DataLoss, match=rf"are gone: .* up to offset {KEPT} only") as caught:
        cut_off.strict.go_on()
    assert caught.value.condition == "COULD_NOT_READ_OFFSET_RANGE"
    assert not any(value.startswith(b"after") for _, _, value in cut_off.strict.rows)


def test_no_offset_comes_twice_where_a_loss_is_passed_over(cut_off, caplog):
    cut_off.lenient.go_on()
    assert cut_off.lenient.places == places_of(cut_off.task)
    assert [value[:4] for _, _, value in cut_off.lenient.rows[:KEPT]] == [b"kept"] * KEPT
    assert cut_off.lenient.rows[-1][2].startswith(b"after")
    assert "are gone" in caplog.text
