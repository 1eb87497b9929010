"""Which connection a reader gets, and who else gets it."""

import os
import pickle
import warnings
from contextlib import closing

import pytest

from pyspark_kafkaproto.errors import ConnectionFailed
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import ClientConfig, Connections, Deadline, Endpoint, connections_for
from pyspark_kafkaproto.net.ports import free_ports
from tests.fake_broker import FakeCluster

ALL_TOPICS = MetadataRequest(topics=None)


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def endpoint(cluster):
    return Endpoint.parse(cluster.address())


@pytest.fixture
def pool(cluster):
    with closing(Connections(ClientConfig.parse(_properties(cluster)))) as pool:
        yield pool


def _properties(cluster):
    return {"bootstrap.servers": cluster.address()}


def soon():
    return Deadline.after(5)


def test_idle_connection_is_kept(pool, endpoint, cluster):
    first = pool.get(endpoint, soon())
    first.request(ALL_TOPICS, soon())
    assert pool.get(endpoint, soon()) is first
    assert len(cluster.asked("ApiVersions")) == 1


def test_connection_that_the_broker_closed_is_replaced(pool, endpoint, cluster):
    first = pool.get(endpoint, soon())
    first.request(ALL_TOPICS, soon())
    cluster.hang_up()
    deadline = soon()
    while first.is_idle:
        deadline.check("waiting for the end of the connection")
    second = pool.get(endpoint, soon())
    assert second is not first
    assert not first.is_open
    assert second.request(ALL_TOPICS, soon()).cluster_id == "fake"


def test_reader_that_waits_for_an_answer_keeps_its_connection(pool, endpoint, cluster):
    first = pool.get(endpoint, soon())
    first.send(ALL_TOPICS, soon())
    second = pool.get(endpoint, soon())
    assert second is not first
    assert second.request(ALL_TOPICS, soon()).cluster_id == "fake"
    assert first.receive(soon()).message.cluster_id == "fake"
    assert pool.get(endpoint, soon()) is first


def test_readers_that_take_turns_open_no_connection_each_time(pool, endpoint, cluster):
    sent = pool.get(endpoint, soon())
    sent.send(ALL_TOPICS, soon())
    for _ in range(5):
        other = pool.get(endpoint, soon())
        other.send(ALL_TOPICS, soon())
        sent.receive(soon())
        sent = other
    assert len(cluster.asked("ApiVersions")) == 2


def test_connection_closed_with_an_answer_to_come_is_replaced(pool, endpoint):
    first = pool.get(endpoint, soon())
    first.send(ALL_TOPICS, soon())
    first.close()
    assert pool.get(endpoint, soon()).request(ALL_TOPICS, soon()).cluster_id == "fake"


def test_each_broker_has_its_own(pool):
    with FakeCluster(nodes=2) as two:
        first, second = (pool.get(Endpoint.parse(two.address(node)), soon()) for node in (1, 2))
        assert first is not second
        assert pool.get(Endpoint.parse(two.address(1)), soon()) is first


def test_failed_connection_is_tried_again_the_next_time(pool):
    place = Endpoint("127.0.0.1", *free_ports(1))
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            pool.get(place, soon())


def test_closed_pool_opens_new_ones(pool, endpoint):
    first = pool.get(endpoint, soon())
    pool.close()
    assert not first.is_open
    assert pool.get(endpoint, soon()) is not first


def test_configurations_share_connections_only_when_all_of_them_is_equal(cluster):
    config = ClientConfig.parse(_properties(cluster))
    again = pickle.loads(pickle.dumps(config))
    other = ClientConfig.parse(_properties(cluster) | {"client.id": "somebody else"})
    assert connections_for(config) is connections_for(again)
    assert connections_for(config) is not connections_for(other)


def test_child_process_does_not_use_its_parents_connections(pool, endpoint, cluster):
    first = pool.get(endpoint, soon())
    with warnings.catch_warnings():
        # Python 3.12 warns of threads at a fork; the fake broker's ones stay with the parent.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            own = pool.get(endpoint, soon())
            works = own is not first and own.request(ALL_TOPICS, soon()).cluster_id == "fake"
            os._exit(0 if works and not first.is_open else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.get(endpoint, soon()) is first
    assert first.request(ALL_TOPICS, soon()).cluster_id == "fake"
