"""Which broker is asked what any can answer, who is asked next, and what is said when none does."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition, contacts, routing
from pyspark_kafkaproto.cluster.coordinators import TRANSACTION_KEY
from pyspark_kafkaproto.errors import ConnectionFailed, DeadlineExceeded, RemoteProtocolError
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import ClientConfig, Connection, Connections, Deadline, Endpoint
from tests.clock import stop_clock
from tests.fake_broker import DEFAULT, STALL, FakeCluster, Fault, close, metadata, raw

FIRST = TopicPartition("orders", 0)

_OF_METADATA = ("brokers", "cluster_id", "controller_id", "topics", "error_code")


def test_next_broker_is_asked_when_the_first_is_gone(brokers, kafka):
    brokers.stop(1)
    assert set(kafka.describe().topics) == {"orders", "empty"}


def test_next_broker_is_asked_when_the_first_hangs_up(brokers, kafka):
    brokers.on("Metadata", close(), node=1)
    kafka.describe()
    assert [call.node_id for call in brokers.calls if call.api == "Metadata"] == [1, 2]


def test_known_brokers_are_asked_before_the_bootstrap_ones(brokers, kafka_at):
    kafka = kafka_at(brokers.address(2))
    kafka.describe()
    kafka.describe()
    assert [call.node_id for call in brokers.calls if call.api == "Metadata"] == [2, 1]


def test_no_broker_reached_names_each_and_why_and_soon(clock, kafka_at, unused_ports):
    ports = unused_ports(2)
    kafka = kafka_at(",".join(f"127.0.0.1:{port}" for port in ports))
    with pytest.raises(ConnectionFailed) as caught:
        kafka.describe()
    for port in ports:
        assert f"127.0.0.1:{port}: 127.0.0.1: Connection refused" in str(caught.value)
        assert f"127.0.0.1:{port}" in caught.value.broker
    assert caught.value.stage == "connect"
    assert "(is bootstrap.servers right, and does a broker run there? " in str(caught.value)
    # The time to set up a connection, not the minute that a call may take.
    assert 8 < clock.now - 1000 <= 10


def test_who_never_answers_is_given_up_when_connecting_may_take_no_longer(clock, monkeypatch):
    """What a try took counts: the second one would take as long again."""
    config = ClientConfig.parse({"bootstrap.servers": "127.0.0.1:1"})
    tries = []

    def hang(endpoint):
        tries.append(endpoint)
        clock.now += config.connection_setup_timeout_s
        raise DeadlineExceeded("handshake", config.connection_setup_timeout_s)

    monkeypatch.setattr(contacts, "time", clock)
    deadline = Deadline.after(60)
    with closing(Router(config)) as router, pytest.raises(DeadlineExceeded):
        router.retrying("ask", lambda: router.at_any(hang, deadline), deadline)
    assert len(tries) == 1


def test_silent_broker_is_named_beside_the_refusing_one(brokers, kafka_at, unused_ports):
    brokers.on("Metadata", STALL)
    (port,) = unused_ports(1)
    times = {"request.timeout.ms": 50, "default.api.timeout.ms": 60}
    kafka = kafka_at(f"127.0.0.1:{port},{brokers.address(1)}", **times)
    with pytest.raises(ConnectionFailed) as caught:
        kafka.describe()
    assert f"127.0.0.1:{port}: 127.0.0.1: Connection refused; " in str(caught.value)
    silent = brokers.address(1)
    assert f"{silent}: broker {silent}: receive the answer to Metadata" in str(caught.value)
    assert caught.value.stage == "bootstrap"


def test_next_broker_is_asked_when_the_first_is_none(brokers, kafka_at):
    """Whoever listens there speaks another protocol."""
    brokers.on("ApiVersions", raw(b"SSH-2.0-OpenSSH_9.2\r\n"), node=1)
    kafka = kafka_at(f"{brokers.address(1)},{brokers.address(2)}")
    assert set(kafka.describe().topics) == {"orders", "empty"}


def test_where_nobody_speaks_kafka_it_is_said_at_once(brokers, kafka, clock):
    brokers.on("ApiVersions", raw(b"SSH-2.0-OpenSSH_9.2\r\n"))
    with pytest.raises(RemoteProtocolError):
        kafka.describe()
    assert clock.slept == []


def test_a_broker_that_cannot_tell_its_versions_is_left_for_another(brokers, kafka):
    brokers.on("ApiVersions", ApiVersionsResponse(error_code=-1), node=1)
    assert set(kafka.describe().topics) == {"orders", "empty"}


def test_where_none_can_it_says_so(brokers, kafka, clock):
    brokers.on("ApiVersions", ApiVersionsResponse(error_code=-1))
    with pytest.raises(ConnectionFailed, match=r"its versions, its log says why \(UNKNOWN"):
        kafka.describe()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"error_code": 129}, "REBOOTSTRAP_REQUIRED"),
        ({"error_code": -1, "brokers": ()}, "UNKNOWN_SERVER_ERROR"),
        ({"brokers": ()}, "knows of no broker"),
    ],
)
def test_broker_that_knows_nothing_is_left_for_another(brokers, kafka, clock, says, told):
    """None of its answers is taken for a cluster without topics, groups and transactions."""
    brokers.on("ListGroups", ListGroupsResponse())

    def lost(call):
        found = metadata(brokers, call)
        return type(found)(**{name: getattr(found, name) for name in _OF_METADATA} | says)

    brokers.on("Metadata", lost, node=1)
    assert kafka.list_groups() == []
    assert len(brokers.asked("ListGroups")) == 2
    brokers.on("Metadata", lost)
    with pytest.raises((ConnectionFailed, DeadlineExceeded), match=told):
        kafka.list_groups()


@pytest.mark.slow
def test_broker_that_was_silent_is_asked_last_the_next_time(brokers):
    brokers.on("Metadata", STALL, node=1)
    leaders = {FIRST: Leader(1, Endpoint.parse(brokers.address(1)), 0)}
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    router = Router(config, leaders=leaders)
    # A try of a reader has one time-out for all it does: a stalled leader may take all of it.
    with pytest.raises(DeadlineExceeded):
        router.topology({"orders"}, Deadline.after(0.5))
    assert set(router.topology({"orders"}, Deadline.after(5)).topics) == {"orders"}
    assert [call.node_id for call in brokers.calls if call.api == "Metadata"] == [1, 2]
    router.close()


class _Answering:
    """A connection to whoever answers all."""

    is_throttled = False

    def request(self, *_):
        return "an answer"

    def close(self):
        pass


class _Hanging(Connections):
    """Everybody takes connections and says nothing; notes how long each was waited for."""

    def __init__(self, config, clock):
        super().__init__(config)
        self.waited, self._clock = [], clock

    def _open(self, place, endpoint, deadline):
        timeout_s = min(deadline.remaining_s, self.config.connection_setup_timeout_s)
        self.waited.append((str(endpoint), timeout_s))
        self._clock.sleep(timeout_s)
        return super()._open(place, endpoint, Deadline.after(0))


def test_who_hangs_is_not_waited_for_as_long_while_there_are_others(clock):
    """The last one has the whole time of a connection, and so has everybody the next time."""
    config = ClientConfig.parse({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"})
    connections = _Hanging(config, clock)
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            Router(config, connections).topology((), Deadline.after(60))
        clock.sleep(2)  # so long they are left alone
    first, second, third = config.bootstrap_servers
    assert connections.waited == [
        (str(first), 3),
        (str(second), 6),
        (str(third), 10),
        (str(first), 10),
        (str(second), 10),
        (str(third), 10),
    ]


def test_a_slow_network_does_not_take_as_long_for_each_broker_in_vain(clock, monkeypatch):
    """All of them together would take more than the time of a call."""
    config = ClientConfig.parse({"bootstrap.servers": ",".join(f"b{n}:9092" for n in range(30))})
    waited = []

    def connect(endpoint, config, deadline, **_):
        waited.append(min(deadline.remaining_s, 4))
        clock.sleep(waited[-1])
        deadline.check("connect")
        return _Answering()

    monkeypatch.setattr(Connection, "open", connect)
    assert Router(config).ask_any("a question", Deadline.after(60)) == "an answer"
    assert waited == [3, 4]


def test_who_hangs_is_asked_last_by_everybody_in_this_process(brokers, monkeypatch):
    monkeypatch.setattr(contacts, "_ANSWERS_WITHIN_S", 0.05)
    brokers.on("ApiVersions", STALL, node=1)
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    for _ in range(2):
        with closing(Router(config)) as router:
            assert set(router.topology({"orders"}, Deadline.after(5)).topics) == {"orders"}
    assert [call.node_id for call in brokers.calls] == [1, 2, 2, 2, 2]


@pytest.mark.slow
def test_who_hangs_behind_an_open_connection_is_not_waited_for_while_there_are_others(monkeypatch):
    """It was well a moment ago. The answer of the next one may take its time, once it begins."""
    monkeypatch.setattr(contacts, "_ANSWERS_WITHIN_S", 0.2)
    topics = {f"topic-{number}": 1 for number in range(100)}
    with FakeCluster(topics, nodes=2) as brokers:
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        with closing(Router(config)) as router:
            router.topology(None, Deadline.after(5))
            rest = threading.Event()
            brokers.on("Metadata", STALL, node=1)
            brokers.on(
                "Metadata", lambda call: Fault(metadata(brokers, call), rest_after=rest), node=2
            )
            late = threading.Timer(1, rest.set)
            late.start()
            began = time.monotonic()
            assert router.topology(None, Deadline.after(20)).topics.keys() == topics.keys()
            assert time.monotonic() - began < 10
            late.join()
        asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert asked == [1, 1, 2]


@pytest.mark.slow
def test_opinions_are_hardly_waited_for_from_who_does_not_answer(monkeypatch):
    """It has its turn, and little time; two that are well are not doubted for being asked last."""
    stop_clock(monkeypatch, routing)
    monkeypatch.setattr(contacts, "_ANSWERS_WITHIN_S", 0.2)
    monkeypatch.setattr(contacts, "_IF_BACK_S", 0.05)
    with FakeCluster({"orders": 1}, nodes=3) as brokers:
        brokers.on("Metadata", STALL, node=1)
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        began = time.monotonic()
        with closing(Router(config)) as router:
            for _ in range(2):
                for _ in router.opinions():
                    router.topology({"orders"}, Deadline.after(20))
        asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert [node for node in asked if node != 1] == [2, 3, 2, 2, 3, 2]
    assert time.monotonic() - began < 10  # request.timeout.ms is thirty seconds


def test_who_is_behind_is_asked_after_all_others_each_time():
    with FakeCluster({"orders": 1}, nodes=3) as brokers:
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        with closing(Router(config)) as router:
            for _ in range(7):
                router.topology({"orders"}, Deadline.after(5))
                router.distrust_last()
        asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert asked == [1, 2, 3, 1, 2, 3, 1]


class _Asked:
    """Three brokers of which the first is gone, and who was asked in which order."""

    def __init__(self, **given):
        config = ClientConfig.parse({"bootstrap.servers": "a:1,b:1,c:1"} | given)
        self.contacts = contacts.Contacts(config, None, ())
        self.places = list(config.bootstrap_servers)
        self.gone = {self.places[0]}
        self.order = ""

    def at_any(self):
        return self.contacts.at_any(self._attempt, Deadline.after(5))

    def _attempt(self, place):
        self.order += place.host
        if place in self.gone:
            raise ConnectionFailed(str(place), "connect", "gone")
        return place


def test_who_is_gone_has_one_turn_in_each_round_and_no_more():
    asked = _Asked()
    for _ in range(6):
        asked.at_any()
        asked.contacts.distrust_last()
    assert asked.order == "abc" * 3


def test_who_is_asked_in_vain_again_is_not_left_alone_for_longer(monkeypatch):
    """Else whoever asks often would never learn that it is back."""
    asked = _Asked()
    place = asked.places[0]
    asked.contacts.ask_last(place)
    end = asked.contacts._left_alone[place]
    asked.contacts.ask_last(place)
    assert asked.contacts._left_alone[place] is end
    monkeypatch.setattr(contacts, "_LEFT_ALONE_S", -1.0)
    asked.contacts._left_alone.clear()
    asked.contacts.ask_last(place)
    over = asked.contacts._left_alone[place]
    asked.contacts.ask_last(place)
    assert asked.contacts._left_alone[place] is not over


def test_nobody_is_waited_for_once_anybody_has_answered():
    asked = _Asked()
    assert asked.contacts.waits_for() == dict.fromkeys(asked.places)
    asked.gone = set(asked.places)
    with pytest.raises(ConnectionFailed):
        asked.at_any()
    assert {str(error) for error in asked.contacts.waits_for().values()} != {"None"}
    asked.gone = set(asked.places[:1])
    asked.at_any()
    assert asked.contacts.waits_for() == {}


def test_what_whoever_met_an_error_had_in_hand_is_not_kept():
    """A traceback holds the frames that it went through, and all that is in them."""
    asked = _Asked()
    asked.gone = set(asked.places)

    class Large:
        pass

    def ask():
        held = Large()
        large.append(weakref.ref(held))
        asked.at_any()

    large = []
    with suppress(ConnectionFailed):
        ask()
    gc.collect()
    assert large[0]() is None


def test_one_call_of_many_that_end_together_does_not_end_that():
    hasty = _Asked().contacts.within(5)
    end = hasty.deadline()
    with hasty.one_call():
        pass
    assert hasty.deadline() is end


def test_haste_is_never_slower_than_the_configuration():
    given = {"request.timeout.ms": 2000}
    assert _Asked(**given).contacts.waiting(600).config.request_timeout_s == 2
    assert _Asked(**given).contacts.waiting(0.5).config.request_timeout_s == 0.5


@pytest.mark.slow
def test_who_hangs_is_hardly_waited_for_while_others_answer_with_something_old(monkeypatch):
    """A partition that nobody leads is looked up at all of them in turn, ten times a second."""
    monkeypatch.setattr(contacts, "_ANSWERS_WITHIN_S", 0.05)
    monkeypatch.setattr(contacts, "_IF_BACK_S", 0.05)
    at_once = {"reconnect.backoff.ms": 0, "reconnect.backoff.max.ms": 0}
    took_s = []
    with FakeCluster({"orders": 1}, nodes=3) as brokers:
        brokers.on("ApiVersions", STALL, node=1)
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers} | at_once)
        with closing(Router(config)) as router:
            for _ in range(6):
                began = time.monotonic()
                router.topology({"orders"}, Deadline.after(30))
                router.distrust_last()
                took_s.append(time.monotonic() - began)
            brokers.on("ApiVersions", DEFAULT, node=1)
            for _ in range(30):  # it is back, and nobody has to wait for that to be noticed
                router.topology({"orders"}, Deadline.after(30))
                router.distrust_last()
                if brokers.asked("Metadata", node=1):
                    break
        assert brokers.asked("Metadata", node=1)
    assert max(took_s) < 5  # socket.connection.setup.timeout.ms is ten seconds


def test_who_throttles_is_not_waited_for_while_there_are_others():
    def throttled(call):
        answer = metadata(brokers, call)
        return MetadataResponse(brokers=answer.brokers, topics=answer.topics, throttle_time_ms=1000)

    with FakeCluster({"orders": 1}, nodes=2) as brokers:
        brokers.on("Metadata", throttled, node=1)
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        with closing(Router(config)) as router:
            for _ in range(3):
                router.topology({"orders"}, Deadline.after(5))
        asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert asked == [1, 2, 2]


def test_misspelt_bootstrap_servers_are_named_at_once(clock, kafka_at, unknown_hosts):
    unknown_hosts |= {"borker-1", "borker-2"}
    with pytest.raises(ConnectionFailed) as caught:
        kafka_at("borker-1:9092,borker-2:9092").describe()
    assert caught.value.stage == "resolve"
    assert "'borker-1' does not resolve" in str(caught.value)
    assert "'borker-2' does not resolve" in str(caught.value)
    assert clock.slept == []


@pytest.mark.slow
def test_broker_that_was_reached_once_is_waited_for(brokers, kafka, clock):
    kafka.describe()
    for node in (1, 2):
        brokers.stop(node)
    with pytest.raises((ConnectionFailed, DeadlineExceeded)):
        kafka.describe()
    assert 55 < clock.now - 1000 <= 60


def test_a_router_in_haste_knows_whom_the_other_knows(brokers):
    brokers.coordinators["id"] = 2
    config = ClientConfig.parse({"bootstrap.servers": brokers.address(1)})
    with closing(Router(config)) as router:
        router.topology((), router.deadline())
        brokers.stop(1)
        hasty = router.within(9)
        found = hasty.coordinators({"id"}, hasty.deadline(), TRANSACTION_KEY)
        assert str(found["id"]) == brokers.address(2)


@pytest.mark.slow
def test_a_router_in_haste_tries_more_than_one_broker(brokers):
    brokers.on("FindCoordinator", STALL, node=1)
    brokers.coordinators["id"] = 2
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    with closing(Router(config)) as router:
        hasty = router.within(1.2)
        found = hasty.retrying(
            "find it",
            lambda: hasty.coordinators(
                {"id"},
                hasty.deadline().sooner(hasty.config.request_timeout_s),
                TRANSACTION_KEY,
            ),
            hasty.deadline(),
        )
        assert str(found["id"]) == brokers.address(2)


def test_all_calls_in_haste_end_together(kafka, clock):
    router = kafka._router
    hasty = router.within(9)
    clock.sleep(4)
    assert hasty.deadline().remaining_s == hasty.within(30).deadline().remaining_s == 5
    assert hasty.within(3).deadline().remaining_s == 3
    assert hasty.config.request_timeout_s == 3
    assert router.deadline().remaining_s == router.config.default_api_timeout_s


def test_a_call_that_another_thread_makes_meanwhile_leaves_its_end_to_nobody(clock):
    """All that is asked later would have no time, and name brokers that do answer."""
    config = ClientConfig.parse({"bootstrap.servers": "127.0.0.1:1"})
    with closing(Router(config)) as router, ThreadPoolExecutor(1) as other:
        ours, others = router.one_call(), router.one_call()
        ours.__enter__()
        other.submit(others.__enter__).result()
        ours.__exit__(None, None, None)
        other.submit(others.__exit__, None, None, None).result()
        clock.sleep(100)
        assert router.deadline().remaining_s == pytest.approx(60)
