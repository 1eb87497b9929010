"""The k-th use of a socket fails, for k = 1, 2, 3 … to the end: the rows are always the same.

So every place between two system calls is met once, those too that nobody thought of.
"""

import itertools

import pytest

from pyspark_kafkaproto.client import Fetcher, ReadSettings
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import DataLoss
from pyspark_kafkaproto.net import connections_for
from tests.examples import first
from tests.fake_broker import DEFAULT
from tests.fake_log import Answered, fetch
from tests.unit.client.answers import answered
from tests.unit.client.faults import MOST_CALLS, Failing, lost, timed_out
from tests.unit.client.rows import rows, rows_of

pytestmark = pytest.mark.usefixtures("answers_in_pieces")

PIECE_BYTES = 5000  # a read of the logs below takes a few dozen


# Either way a call fails, the next one is another connection's.
each_error = pytest.mark.parametrize("error", first(1, [lost, timed_out]))


@pytest.mark.slow
@each_error
def test_reading_two_partitions_of_two_leaders(brokers, config, task, clock, monkeypatch, error):
    brokers.topics["orders"].move(1, node_id=2)
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(8, size_bytes=2000)
    planned = task((0, 0, None), (1, None, 80))
    for k in itertools.count(1):
        with monkeypatch.context() as patch:
            failing = Failing(patch, k, error)
            fetcher = Fetcher(planned, config(client_id=f"k-{k}"), ReadSettings())
            found = [row for block in fetcher.blocks() for row in rows_of(block)]
        assert sorted(found) == rows(0, 0, 80) + rows(1, 0, 80)
        if failing.is_over:
            break
    assert 20 < k < MOST_CALLS


def read_with_each_call_failing(brokers, patches, error, planned, config, prepare, settings=None):
    """Read once per k, and once with no failure; gives how each read ended: rows, or its error.

    `prepare` is called while nobody asks the brokers for anything: what a read before had asked
    for and did not wait for could else take what they are told to answer this one.
    """
    for k in itertools.count(1):
        prepare()
        own = config(k)
        with patches.context() as patch:
            failing = Failing(patch, k, error)
            fetcher = Fetcher(planned, own, settings or ReadSettings())
            found = []
            try:
                for block in fetcher.blocks():
                    found += rows_of(block)
            except DataLoss as loss:
                found.append(loss.condition)
            yield found
        connections_for(own).close()
        brokers.wait_until_left()
        if failing.is_over:
            break
    assert 8 < k < MOST_CALLS


@pytest.mark.slow
@each_error
def test_reading_from_a_follower(brokers, config, task, clock, monkeypatch, error):
    brokers.logs["orders", 0].fill(8, size_bytes=2000)

    def send_on(call):
        if not call.request.rack_id:
            return DEFAULT
        return answered(Answered(high_watermark=80, preferred_read_replica=2))(call)

    def follow(call):
        return fetch(brokers, call._replace(node_id=1))

    brokers.on("Fetch", send_on, node=1)
    brokers.on("Fetch", follow, node=2)
    planned = task((0, 0, 80))

    def near(k):
        return config(client_id=f"k-{k}", client_rack="eu-2", max_partition_fetch_bytes=20_000)

    for found in read_with_each_call_failing(
        brokers, monkeypatch, error, planned, near, lambda: None
    ):
        assert found == rows(0, 0, 80)


def moving(brokers, then):
    """Each read's third Fetch meets a new leader, and what `then` does to the log."""
    log = brokers.logs["orders", 0]
    topic = brokers.topics["orders"]

    def elect(call):
        topic.move(0, node_id=2)
        then(log)
        return fetch(brokers, call)

    def prepare():
        topic.leaders[0], topic.epochs[0] = 1, 0
        log.cut_off(0)
        log.epoch = 0
        log.fill(12, size_bytes=1000)
        brokers.on("Fetch", DEFAULT, DEFAULT, elect, DEFAULT)

    return prepare


@pytest.mark.slow
@pytest.mark.parametrize("error", [lost, timed_out])
def test_reading_while_the_leader_moves(brokers, config, task, clock, monkeypatch, error):
    planned = task((0, 0, 120))

    def small(k):
        return config(client_id=f"k-{k}", max_partition_fetch_bytes=20_000)

    prepare = moving(brokers, lambda log: None)
    for found in read_with_each_call_failing(brokers, monkeypatch, error, planned, small, prepare):
        assert found == rows(0, 0, 120)


@pytest.mark.slow
@each_error
@pytest.mark.parametrize("strict", first(1, [True, False]))
def test_reading_a_log_that_is_cut_off(brokers, config, task, clock, monkeypatch, error, strict):
    """Whatever fails on the way, the loss is told; no offset comes twice where it is passed over.

    A failure may let the election happen before as much was read as is lost: then nothing is.
    """
    planned = task((0, 0, 120))

    def cut_off(log):
        log.cut_off(10)
        log.fill(12, size_bytes=1000)

    def small(k):
        return config(client_id=f"k-{k}", max_partition_fetch_bytes=20_000)

    settings = ReadSettings(fail_on_data_loss=strict)
    prepare = moving(brokers, cut_off)
    ends = []
    for found in read_with_each_call_failing(
        brokers, monkeypatch, error, planned, small, prepare, settings
    ):
        whole = rows(0, 0, 120)
        told = found[-1:] == ["COULD_NOT_READ_OFFSET_RANGE"]
        assert found[:-1] == whole[: len(found) - 1] if told else found == whole
        ends.append(told)
    assert ends[-1] == strict
    if not strict:
        assert not any(ends)


@pytest.mark.slow
@each_error
def test_asking_for_offsets_of_two_leaders(brokers, clock, monkeypatch, error):
    brokers.topics["orders"].move(1, node_id=2)
    both = {TopicPartition("orders", number) for number in (0, 1)}
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(partition + 1)
    for k in itertools.count(1):
        with monkeypatch.context() as patch:
            failing = Failing(patch, k, error)
            with KafkaCluster({"bootstrap.servers": brokers.bootstrap_servers}) as kafka:
                offsets = kafka.get_latest_leader_offsets(both)
        assert offsets == {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 20}
        if failing.is_over:
            break
    assert 10 < k < MOST_CALLS
