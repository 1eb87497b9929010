"""Which connection a reader gets, and who else gets it."""

import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from pyspark_kafkaproto.errors import AuthenticationFailed, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from pyspark_kafkaproto.net import ClientConfig, Connections, Deadline, Endpoint, connections_for
from pyspark_kafkaproto.net import pool as pool_module
from tests.fake_broker import FakeCluster, close
from tests.fake_login import LOGIN, logged_in, want_login
from tests.forks import fork

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


def test_a_kept_connection_is_found_behind_one_in_use(pool, endpoint):
    first = pool.get(endpoint, soon())
    first.send(ALL_TOPICS, soon())
    second = pool.get(endpoint, soon())
    assert pool.get(endpoint, soon()) is second
    first.receive(soon())


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


def test_failed_connection_is_tried_again_the_next_time(pool, unused_ports):
    place = Endpoint("127.0.0.1", *unused_ports(1))
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            pool.get(place, soon())


def test_broker_that_cannot_be_reached_is_left_alone_for_a_growing_while(clock, unused_ports):
    properties = {"bootstrap.servers": "b:1", "reconnect.backoff.ms": 100}
    pool = Connections(ClientConfig.parse(properties | {"reconnect.backoff.max.ms": 400}))
    place = Endpoint("127.0.0.1", *unused_ports(1))

    def refused():
        with pytest.raises(ConnectionFailed) as caught:
            pool.get(place, soon())
        return caught.value

    for nominal_s in (0.1, 0.2, 0.4, 0.4):
        tried = refused()
        tried.patience_s = 0  # who catches it may write on it
        clock.now += 0.79 * nominal_s
        again = refused()
        assert str(again) == str(tried)
        assert again.__cause__ is None
        assert again.patience_s > 0
        clock.now += 0.42 * nominal_s  # 1.21 in all: jitter is a fifth


def test_broker_that_is_left_alone_is_not_tried(clock, monkeypatch):
    """A port that refuses says the same each time: it is the tries that count."""
    tries, slept = [], []
    monkeypatch.setattr(pool_module.time, "sleep", slept.append)

    def refuse(endpoint, *_, first):
        tries.append(first)
        raise ConnectionFailed(str(endpoint), "connect", "refused")

    def get():
        with pytest.raises(ConnectionFailed):
            pool.get(Endpoint("b", 1), soon())
        return len(tries)

    monkeypatch.setattr(pool_module.Connection, "open", refuse)
    properties = {"bootstrap.servers": "b:1", "reconnect.backoff.ms": 100}
    pool = Connections(ClientConfig.parse(properties | {"reconnect.backoff.max.ms": 400}))
    for number, nominal_s in enumerate((0.1, 0.2, 0.4, 0.4), 1):
        assert get() == number
        clock.now += 0.79 * nominal_s
        assert get() == number
        clock.now += 0.42 * nominal_s  # 1.21 in all: jitter is a fifth
    assert tries == [0, 1, 2, 3], "each begins with another of its addresses"
    assert slept == [], "other brokers need not wait for this one"


def test_a_login_that_was_refused_is_tried_again_after_a_growing_while(
    clock, cluster, endpoint, monkeypatch
):
    """A member that polls on tried it hundreds of times a second."""
    monkeypatch.setattr(pool_module, "time", clock)
    want_login(cluster)
    refusal = SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b"")
    cluster.on("SaslAuthenticate", refusal)
    with closing(Connections(ClientConfig.parse(_properties(cluster) | LOGIN))) as pool:
        for _ in range(8):
            with pytest.raises(AuthenticationFailed, match="no"):
                pool.get(endpoint, soon())
        assert len(cluster.asked("SaslAuthenticate")) == 8
        assert clock.slept == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0], rel=0.21)
        with pytest.raises(AuthenticationFailed, match="no"):
            pool.get(endpoint, Deadline.after(0.1))  # too little time to wait in
        assert len(cluster.asked("SaslAuthenticate")) == 8
        cluster.on("SaslAuthenticate", logged_in())
        assert pool.get(endpoint, soon()).is_idle


@pytest.mark.slow
def test_broker_that_is_reached_again_begins_anew(clock, endpoint, cluster):
    properties = _properties(cluster) | {"reconnect.backoff.ms": 100}
    pool = Connections(ClientConfig.parse(properties))
    cluster.on("ApiVersions", close(), close(), None)
    for wait_s in (0.2, 0.4):
        with pytest.raises(ConnectionFailed):
            pool.get(endpoint, soon())
        assert pool.has_failed(endpoint)
        clock.now += wait_s
    with closing(pool):
        pool.get(endpoint, soon()).close()
        assert not pool.has_failed(endpoint)
        cluster.on("ApiVersions", close(), None)
        with pytest.raises(ConnectionFailed):
            pool.get(endpoint, soon())
        clock.now += 0.13  # the first wait again, and not the third
        pool.get(endpoint, soon())


def test_connection_that_nobody_uses_is_closed(clock, cluster, endpoint):
    properties = _properties(cluster) | {"connections.max.idle.ms": 1000}
    with closing(Connections(ClientConfig.parse(properties))) as pool, FakeCluster() as other:
        first = pool.get(endpoint, soon())
        clock.now += 0.9
        assert pool.get(endpoint, soon()) is first
        clock.now += 0.9
        waiting = pool.get(Endpoint.parse(other.address()), soon())
        waiting.send(ALL_TOPICS, soon())
        clock.now += 1.1
        pool.get(endpoint, soon())
        assert not first.is_open
        assert waiting.is_open
        assert len(pool.kept) == 2


def test_pools_of_configurations_that_nobody_uses_are_let_go(cluster, endpoint, monkeypatch):
    monkeypatch.setattr(pool_module, "_pools", {})

    def pool_of(number):
        return connections_for(
            ClientConfig.parse(_properties(cluster) | {"client.id": f"job {number}"})
        )

    busy, idle, used = pool_of("busy"), pool_of("idle"), pool_of("used")
    waiting = busy.get(endpoint, soon())
    waiting.send(ALL_TOPICS, soon())
    unused = idle.get(endpoint, soon())
    for number in range(pool_module.MOST_POOLS - 2):
        pool_of(number)
        assert pool_of("used") is used
    assert unused.is_open  # by whoever still has it
    del idle
    assert not unused.is_open
    assert waiting.is_open
    assert pool_of("busy") is busy
    assert len(pool_module._pools) <= pool_module.MOST_POOLS
    busy.close()


def ended(connection):
    """Wait for the end of a connection that its broker has closed."""
    deadline = soon()
    while not connection._transport.is_readable():
        deadline.check("waiting for the end of the connection")
    return connection


def test_what_brokers_have_closed_does_not_wait_in_pools_that_nobody_uses(
    cluster, endpoint, monkeypatch
):
    monkeypatch.setattr(pool_module, "_pools", {})
    idle, used = (
        ClientConfig.parse(_properties(cluster) | {"client.id": name}) for name in ("idle", "used")
    )
    unused, other = connections_for(idle).get(endpoint, soon()), []
    thread = threading.Thread(
        target=lambda: other.append(connections_for(idle).get(endpoint, soon()))
    )
    thread.start()
    thread.join()
    cluster.hang_up()
    ended(unused)
    ended(*other)
    connections_for(used)
    assert not unused.is_open
    assert other[0].is_open  # its thread may be about to use it
    alive = connections_for(idle).get(endpoint, soon())
    waiting = connections_for(used).get(endpoint, soon())
    waiting.send(ALL_TOPICS, soon())
    ended(waiting)  # its answer is there
    connections_for(used)
    assert alive.is_open
    assert waiting.is_open
    for pool in pool_module._pools.values():
        pool.close()


def test_what_is_in_pools_that_nobody_uses_is_closed_in_time(clock, cluster, endpoint, monkeypatch):
    monkeypatch.setattr(pool_module, "_pools", {})
    idle = _properties(cluster) | {"client.id": "idle", "connections.max.idle.ms": "1000"}
    kept = []

    def keep():
        kept.append(connections_for(ClientConfig.parse(idle)).get(endpoint, soon()))

    thread = threading.Thread(target=keep)
    thread.start()
    thread.join()
    connections_for(ClientConfig.parse(_properties(cluster)))
    assert kept[0].is_open
    clock.sleep(1.1)
    connections_for(ClientConfig.parse(_properties(cluster)))
    assert not kept[0].is_open


def test_so_many_pools_are_kept_and_no_more(cluster, monkeypatch):
    monkeypatch.setattr(pool_module, "_pools", {})
    monkeypatch.setattr(pool_module, "MOST_POOLS", 2)
    first, second, third = (
        ClientConfig.parse(_properties(cluster) | {"client.id": f"job {number}"})
        for number in range(3)
    )
    pools = [connections_for(first), connections_for(second)]
    assert list(pool_module._pools.values()) == pools
    connections_for(third)
    assert list(pool_module._pools) == [second, third]
    monkeypatch.setattr(pool_module, "MOST_POOLS", 1)
    connections_for(first)
    assert list(pool_module._pools) == [first]


def test_who_comes_last_keeps_his_pool_where_all_others_are_busy(cluster, endpoint, monkeypatch):
    monkeypatch.setattr(pool_module, "_pools", {})
    monkeypatch.setattr(pool_module, "MOST_POOLS", 1)
    busy = connections_for(ClientConfig.parse(_properties(cluster) | {"client.id": "busy"}))
    waiting = busy.get(endpoint, soon())
    waiting.send(ALL_TOPICS, soon())
    last = ClientConfig.parse(_properties(cluster))
    assert connections_for(last) is connections_for(last)
    busy.close()


def test_brokers_that_want_silence_are_known(pool, endpoint, cluster):
    connection = pool.get(endpoint, soon())
    assert pool.throttling == set()
    cluster.on("Metadata", MetadataResponse(throttle_time_ms=60_000))
    connection.request(ALL_TOPICS, soon())
    assert pool.throttling == {endpoint}
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: pool.throttling).result() == set(), "it has its own"


def test_threads_have_connections_of_their_own(pool, endpoint):
    def get():
        found.append(pool.get(endpoint, soon()))
        got.set()
        ended.wait(5)

    found, got, ended = [pool.get(endpoint, soon())], threading.Event(), threading.Event()
    thread = threading.Thread(target=get)
    thread.start()
    assert got.wait(5)
    assert pool.get(endpoint, soon()) is found[0]
    assert found[1] is not found[0]
    ended.set()
    thread.join()


def test_what_another_thread_has_not_used_for_long_is_closed(clock, cluster, endpoint):
    properties = _properties(cluster) | {"connections.max.idle.ms": 1000}
    with closing(Connections(ClientConfig.parse(properties))) as pool, FakeCluster() as other:

        def get():
            found.append(pool.get(endpoint, soon()))
            got.set()
            ended.wait(5)
            found.append(pool.get(endpoint, soon()))

        found, got, ended = [], threading.Event(), threading.Event()
        thread = threading.Thread(target=get)
        thread.start()
        assert got.wait(5)
        clock.now += 0.9
        pool.get(Endpoint.parse(other.address()), soon())
        assert found[0].is_open
        clock.now += 0.2
        pool.get(Endpoint.parse(other.address()), soon())
        assert not found[0].is_open
        ended.set()
        thread.join()
        assert found[1].is_open


def test_one_that_was_taken_again_meanwhile_is_not_closed(pool, endpoint):
    first = pool.get(endpoint, soon())
    (place,) = pool._places.values()
    seen = place.kept[first]
    assert pool.get(endpoint, soon()) is first
    assert not place.take(first, seen)
    assert pool.get(endpoint, soon()) is first


def test_a_connection_is_taken_by_one_alone():
    """To use it, or to close it: whoever comes second has none."""
    place, connection, end = pool_module._Place(), object(), soon()
    place.kept[connection] = end
    assert place.take(connection)
    assert not place.take(connection)
    assert not place.take(connection, end)


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
    child = fork()
    if child == 0:
        try:
            own = pool.get(endpoint, soon())
            works = own is not first and own.request(ALL_TOPICS, soon()).cluster_id == "fake"
            works = works and pool.get(endpoint, soon()) is own  # which it keeps
            os._exit(0 if works and not first.is_open else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.get(endpoint, soon()) is first
    assert first.request(ALL_TOPICS, soon()).cluster_id == "fake"


@pytest.mark.slow
def test_next_address_of_a_name_is_tried_where_the_first_takes_connections_and_says_nothing(
    cluster, monkeypatch
):
    dead = socket.create_server(("127.0.0.1", 0))
    good = Endpoint.parse(cluster.address())
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
        for address in (dead.getsockname(), (good.host, good.port))
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
    name = Endpoint("two-addresses", 9092)
    properties = {"bootstrap.servers": str(name), "reconnect.backoff.ms": 0}
    properties |= {"reconnect.backoff.max.ms": 0, "socket.connection.setup.timeout.ms": 200}
    with dead, closing(Connections(ClientConfig.parse(properties))) as pool:
        with pytest.raises((ConnectionFailed, DeadlineExceeded)):
            pool.get(name, Deadline.after(5))
        pool.get(name, Deadline.after(5)).close()
        pool.get(name, Deadline.after(5)).close()  # and the address that was good is kept
