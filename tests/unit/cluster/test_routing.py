"""Who is asked about what, who is asked next, and what is learned anew."""

from contextlib import closing

import pytest

from pyspark_kafkaproto.cluster import Router, TopicPartition, routing
from pyspark_kafkaproto.error_codes import COORDINATOR_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED
from pyspark_kafkaproto.errors import BrokerError, DeadlineExceeded, RemoteProtocolError
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline
from tests.clock import stop_clock
from tests.fake_broker import DEFAULT, FakeCluster, close, metadata

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)

T = ListOffsetsResponse.Topic
P = ListOffsetsResponse.Topic.Partition


def offsets(call, codes=None):
    """A ListOffsets answer about just what was asked: offset 10 for partition 0, 20 for 1."""
    return ListOffsetsResponse(
        topics=tuple(
            T(
                name=topic.name,
                partitions=tuple(
                    P(
                        partition_index=item.partition_index,
                        offset=10 * item.partition_index + 10,
                        error_code=(codes or {}).get(item.partition_index, 0),
                    )
                    for item in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
    )


def refusing(**codes):
    """The same, with an error for some partitions: `p0=6`."""
    return lambda call: offsets(call, {int(name[1:]): code for name, code in codes.items()})


_NOT_LEADER = 6


def _asked_about(requests):
    return [
        [item.partition_index for topic in request.topics for item in topic.partitions]
        for request in requests
    ]


def test_each_opinion_is_of_another_broker(monkeypatch):
    clock = stop_clock(monkeypatch, routing)
    with FakeCluster({"orders": 1}, nodes=2) as brokers:
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        with closing(Router(config)) as router:
            rounds = []
            for is_last in router.opinions():
                router.leaders({FIRST}, Deadline.after(5))
                rounds.append(is_last)
        asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert (rounds, asked) == ([False, False, True], [1, 2, 1])
    assert len(clock.slept) == 2


@pytest.mark.slow
def test_leader_whose_name_is_gone_for_a_while_is_waited_for(brokers, kafka, clock, unknown_hosts):
    def rename(call):
        if clock.now > 1003:
            unknown_hosts.clear()
        found = metadata(brokers, call)
        first, second = found.brokers
        renamed = MetadataResponse.Broker(node_id=1, host="broker-1", port=first.port)
        return MetadataResponse(brokers=(renamed, second), topics=found.topics)

    unknown_hosts.add("broker-1")
    brokers.on("Metadata", rename)
    assert kafka.get_latest_leader_offsets({FIRST}) == {FIRST: 0}
    assert clock.now > 1003


def test_metadata_never_creates_a_topic(brokers, kafka, clock):
    brokers.on("ListOffsets", refusing(p0=6), offsets)
    kafka.describe()
    kafka.get_partitions({"orders"})
    kafka.find_leaders({FIRST})
    kafka.get_latest_leader_offsets({FIRST})
    with pytest.raises(BrokerError):
        kafka.get_partitions({"odrers"})
    requests = brokers.asked("Metadata")
    assert len(requests) > 5
    assert not any(request.allow_auto_topic_creation for request in requests)


def test_error_of_the_whole_metadata_answer_is_raised(brokers, kafka):
    brokers.on("Metadata", MetadataResponse(error_code=31))
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED") as caught:
        kafka.get_partitions({"orders"})
    assert caught.value.code == 31


# Leaders


def test_all_leaders_are_asked_before_the_first_answers(brokers, kafka):
    brokers.topics["orders"].move(1, node_id=2)

    def answer_after_both_were_asked(call):
        brokers.wait_for_call("ListOffsets", 2)
        return offsets(call)

    brokers.on("ListOffsets", answer_after_both_were_asked)
    assert kafka.get_latest_leader_offsets({FIRST, SECOND}) == {FIRST: 10, SECOND: 20}
    assert _asked_about(brokers.asked("ListOffsets", node=1)) == [[0]]
    assert _asked_about(brokers.asked("ListOffsets", node=2)) == [[1]]


def test_one_request_per_leader(brokers, kafka):
    brokers.on("ListOffsets", offsets)
    kafka.get_latest_leader_offsets({FIRST, SECOND, TopicPartition("empty", 0)})
    assert _asked_about(brokers.asked("ListOffsets")) == [[0, 0, 1]]


def test_moved_leader_is_followed_and_only_its_partition_asked_again(brokers, kafka, clock):
    kafka.find_leaders({FIRST, SECOND})
    brokers.topics["orders"].move(1, node_id=2)
    brokers.on("ListOffsets", refusing(p1=6), node=1)
    brokers.on("ListOffsets", offsets, node=2)
    assert kafka.get_latest_leader_offsets({FIRST, SECOND}) == {FIRST: 10, SECOND: 20}
    assert _asked_about(brokers.asked("ListOffsets", node=1)) == [[0, 1]]
    assert _asked_about(brokers.asked("ListOffsets", node=2)) == [[1]]


def test_leader_that_went_away_is_looked_up_again(brokers, kafka, clock):
    brokers.on("ListOffsets", offsets)
    kafka.find_leaders({FIRST})
    brokers.stop(1)
    brokers.topics["orders"].move(0, node_id=2)
    assert kafka.get_latest_leader_offsets({FIRST}) == {FIRST: 10}


def test_connection_cut_by_a_leader_is_tried_again(brokers, kafka, clock):
    brokers.on("ListOffsets", close(), offsets)
    assert kafka.get_latest_leader_offsets({FIRST}) == {FIRST: 10}


def test_election_is_waited_for(brokers, kafka, clock):
    brokers.on("ListOffsets", offsets)
    brokers.topics["orders"].leaders[0] = -1

    def elect(call):
        if clock.now > 1003:
            brokers.topics["orders"].move(0, node_id=2)
        return metadata(brokers, call)

    brokers.on("Metadata", elect)
    assert kafka.get_latest_leader_offsets({FIRST}) == {FIRST: 10}
    assert clock.now > 1003


def test_missing_partition_is_not_waited_for_long(brokers, kafka, clock):
    with pytest.raises(BrokerError, match=r"partition orders-7.*\[0, 1\]"):
        kafka.get_latest_leader_offsets({TopicPartition("orders", 7)})
    assert clock.now - 1000 <= 1


@pytest.mark.parametrize("code", [29, 43, 999])
def test_error_for_good_is_immediate_names_the_broker_and_keeps_what_is_usable(
    brokers, kafka, clock, code
):
    brokers.on("ListOffsets", refusing(p0=code))
    with pytest.raises(BrokerError) as caught:
        kafka.get_latest_leader_offsets({FIRST, SECOND})
    assert clock.slept == []
    assert caught.value.code == code
    assert caught.value.usable == {SECOND: 20}
    assert f"partition orders-0 at broker {brokers.address(1)}" in str(caught.value)


@pytest.mark.slow
def test_error_for_good_goes_before_one_that_could_be_retried(brokers, kafka, clock):
    brokers.on("ListOffsets", refusing(p0=6, p1=29))
    with pytest.raises(BrokerError) as caught:
        kafka.get_latest_leader_offsets({FIRST, SECOND})
    assert caught.value.code == 29
    assert "orders-0" in str(caught.value)
    assert sum(clock.slept) > 50, "and what could be retried was"


def test_all_that_failed_is_named(brokers, kafka, clock):
    brokers.on("ListOffsets", refusing(p0=29, p1=29))
    with pytest.raises(BrokerError, match=r"orders-0 at.*\nalso failed: partition orders-1 at"):
        kafka.get_latest_leader_offsets({FIRST, SECOND})


@pytest.mark.slow
def test_partition_without_a_leader_keeps_no_other_from_an_answer(brokers, kafka, clock):
    brokers.on("ListOffsets", offsets)
    brokers.topics["orders"].leaders[0] = -1
    with pytest.raises(BrokerError, match=r"orders-0.*LEADER_NOT_AVAILABLE") as caught:
        kafka.get_latest_leader_offsets({FIRST, SECOND})
    assert caught.value.usable == {SECOND: 20}


def test_what_each_error_shows_to_be_out_of_date_is_learned_anew(brokers, kafka, clock):
    """Of two that are worth a retry, too: the leader that moved is asked."""

    def one_moved(call):
        brokers.topics["orders"].move(1, node_id=2)
        return offsets(call, {0: 5, 1: 6})

    brokers.on("ListOffsets", one_moved, refusing(p0=5), offsets, node=1)
    brokers.on("ListOffsets", offsets, node=2)
    assert kafka.get_latest_leader_offsets({FIRST, SECOND}) == {FIRST: 10, SECOND: 20}
    assert len(brokers.asked("ListOffsets", node=2)) == 1


def test_right_that_was_given_since_is_noticed(brokers, kafka):
    brokers.topics["orders"].error_code = TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        kafka._router.leaders([FIRST], Deadline.after(5))
    brokers.topics["orders"].error_code = 0
    assert kafka._router.leaders([FIRST], Deadline.after(5)).keys() == {FIRST}


def test_coordinator_that_was_not_there_is_asked_for_again(brokers, kafka):
    part = FindCoordinatorResponse.Coordinator
    nobody = part(key="g", node_id=-1, error_code=COORDINATOR_NOT_AVAILABLE)
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(nobody,)), DEFAULT)
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        kafka._router.coordinator("g", Deadline.after(5))
    found = kafka._router.coordinator("g", Deadline.after(5))
    assert str(found) == brokers.address(1)


def test_of_groups_that_come_and_go_not_all_coordinators_are_known(brokers, kafka, monkeypatch):
    """Who watches a cluster for months asks about groups of all names."""
    monkeypatch.setattr(routing, "_MOST_COORDINATORS", 3)
    router = kafka._router
    for number in range(10):
        router.coordinators([f"group-{number}", "g"], Deadline.after(5))
        assert len(router._coordinators) <= 3
    asked = len(brokers.asked("FindCoordinator"))
    router.coordinators(["group-9", "g"], Deadline.after(5))
    assert len(brokers.asked("FindCoordinator")) == asked, "the last ones are known"
    many = {f"other-{number}" for number in range(5)}
    assert router.coordinators(many, Deadline.after(5)).keys() == many


@pytest.mark.slow
def test_error_that_stays_names_every_broker_that_gave_it(brokers, kafka, clock):
    brokers.on("ListOffsets", refusing(p0=6))

    def move_to_and_fro(call):
        brokers.topics["orders"].move(0, node_id=3 - brokers.topics["orders"].leaders[0])
        return metadata(brokers, call)

    brokers.on("Metadata", move_to_and_fro)
    with pytest.raises(DeadlineExceeded) as caught:
        kafka.get_latest_leader_offsets({FIRST})
    for node in (1, 2):
        assert f"orders-0 at broker {brokers.address(node)}: NOT_LEADER" in str(caught.value)


@pytest.mark.parametrize(
    "partitions", [(), (P(partition_index=0), P(partition_index=5))], ids=["missing", "another"]
)
def test_answer_about_something_else_is_refused(brokers, kafka, partitions):
    brokers.on(
        "ListOffsets", ListOffsetsResponse(topics=(T(name="orders", partitions=partitions),))
    )
    with pytest.raises(RemoteProtocolError, match=f"list offsets, broker {brokers.address(1)}"):
        kafka.get_latest_leader_offsets({FIRST, SECOND})


def test_interrupt_leaves_no_unread_answer_behind(brokers, kafka, monkeypatch):
    brokers.topics["orders"].move(1, node_id=2)
    brokers.on("ListOffsets", offsets)
    kafka.find_leaders({FIRST, SECOND})

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            kafka.get_latest_leader_offsets({FIRST, SECOND})
    kept = kafka._router.connections.kept
    assert not any(connection.in_flight for connection in kept)
    assert kafka.get_latest_leader_offsets({FIRST, SECOND}) == {FIRST: 10, SECOND: 20}


def test_the_same_answer_to_the_same_question_is_the_same_topology(brokers, kafka, monkeypatch):
    stop_clock(monkeypatch, routing)
    told = [kafka.describe({"orders"}) for _ in range(4)]
    assert told[0] == told[1]
    assert told[1] is told[2] is told[3]
    assert len(brokers.asked("Metadata")) == 4
    kafka.get_latest_leader_offsets({FIRST})
    for _ in kafka.opinions():  # which forgets leaders
        assert kafka.describe({"orders"}) == told[3]


def test_what_has_changed_is_told(brokers, kafka):
    for _ in range(3):
        kafka.describe({"orders"})
    brokers.topics["orders"].move(1, node_id=2)
    assert kafka.describe({"orders"}).leader(SECOND).node_id == 2
    assert kafka.describe().topics.keys() == {"orders", "empty"}
    assert kafka.describe({"orders"}).topics.keys() == {"orders"}
    brokers.topics["orders"].move(1, node_id=1)
    assert kafka.describe({"orders"}).leader(SECOND).node_id == 1


def test_once_is_once_and_no_longer(brokers, clock):
    """Also where it has failed: the next question is asked again until it is answered."""
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    with closing(Router(config)) as router:
        tries = []

        def attempt():
            tries.append(len(tries))
            if len(tries) < 3:
                raise BrokerError(_NOT_LEADER, "ListOffsets", "it")
            return len(tries)

        def ask():
            return router.retrying("ask", attempt, router.deadline())

        with pytest.raises(BrokerError), router.trying_once():
            ask()
        assert tries == [0]
        assert ask() == 3


@pytest.fixture
def router(brokers):
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    with closing(Router(config)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("code", "failures", "tries"), [(3, 1, 2), (3, 9, routing.OPINIONS), (29, 9, 1)]
)
def test_only_what_a_broker_may_not_have_heard_of_is_doubted(router, clock, code, failures, tries):
    asked = []

    def ask():
        asked.append(1)
        if len(asked) <= failures:
            raise BrokerError(code, "Metadata", "topic 'orders'")
        return "there"

    if failures < tries:
        assert router.doubting(3, ask) == "there"
    else:
        with pytest.raises(BrokerError):
            router.doubting(3, ask)
    assert len(asked) == tries


def test_a_broker_that_came_since_is_asked_for(brokers, router):
    deadline = router.deadline()
    assert router.cluster_id is None, "nobody was asked"

    def without_others(call):
        said = metadata(brokers, call)
        return MetadataResponse(cluster_id="fake", brokers=said.brokers[:1])

    brokers.on("Metadata", without_others, DEFAULT)
    assert router.broker(1, deadline).node_id == 1
    assert router.broker(2, deadline).node_id == 2
    assert router.broker(1, deadline).node_id == 1
    assert len(brokers.asked("Metadata")) == 2
    assert router.cluster_id == "fake"
    with pytest.raises(BrokerError):
        router.broker(7, deadline)
