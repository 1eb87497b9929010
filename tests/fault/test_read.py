"""Reading while real brokers die, stall, hand over: every row once, whatever happens."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import NewTopic, TopicPartition
from pyspark_kafkaproto.errors import DataLoss
from tests.fault.conftest import RECORDS, killed, restarted, wait_for_all
from tests.fault.reading import LENIENT, Reading, places_of, plan, wait_until_gone
from tests.fault.writing import write
from tests.stalled import stalled

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("fault", [killed, stalled, restarted])
def test_leader_that_is_lost_costs_no_row(trio, kafka, topic, new_config, fault):
    wait_for_all(trio, topic)
    task = plan(kafka, topic)
    assert len(places_of(task)) == RECORDS
    config = new_config()
    reading = Reading(task, config)
    begun = reading.go_on(RECORDS // 100)
    assert 0 < len(begun) < RECORDS / 2
    with fault(trio, task.leaders[TopicPartition(topic, begun[-1][0])].node_id):
        reading.go_on()
        assert reading.places == places_of(task)
        # And a task that was planned before, but begins only now.
        late = Reading(task, config)
        late.go_on()
        assert late.places == places_of(task)


MADE_ANEW = 3000


@pytest.fixture
def made_anew(trio, kafka, new_name, new_config):
    """Three reads that were half way through when their topic was deleted and made again."""
    name = new_name()
    kafka.create_topics([NewTopic(name, assignment={0: [1, 2]})])
    write(trio, name, MADE_ANEW, b"old")
    task = plan(kafka, name)
    readings = [Reading(task, new_config(), mode) for mode in (None, LENIENT)]
    for reading in readings:
        reading.go_on(MADE_ANEW // 2)
    kafka.delete_topics({name})
    wait_until_gone(kafka, task, new_config())
    kafka.create_topics([NewTopic(name, assignment={0: [2, 3]})])
    write(trio, name, MADE_ANEW, b"new")
    return task, *readings


def test_topic_made_anew_mid_read_is_a_loss_or_no_offset_comes_twice(made_anew):
    task, strict, lenient = made_anew
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*deleted and created again"):
        strict.go_on()
    assert {value[:3] for _, _, value in strict.rows} == {b"old"}
    lenient.go_on()
    assert lenient.places == places_of(task)
    assert lenient.rows[-1][2].startswith(b"new")


def test_topic_deleted_mid_read_is_a_loss_or_ends_there(trio, kafka, new_name, new_config):
    name = new_name()
    kafka.create_topics([NewTopic(name, assignment={0: [1, 2]})])
    write(trio, name, MADE_ANEW, b"old")
    task = plan(kafka, name)
    strict, lenient = readings = [Reading(task, new_config(), mode) for mode in (None, LENIENT)]
    for reading in readings:
        reading.go_on(MADE_ANEW // 2)
    kafka.delete_topics({name})
    wait_until_gone(kafka, task, new_config())
    with pytest.raises(DataLoss, match="PARTITIONS_DELETED"):
        strict.go_on()
    lenient.go_on()
    assert lenient.places == places_of(task)[: len(lenient.rows)]
    assert MADE_ANEW / 2 <= len(lenient.rows) < MADE_ANEW
