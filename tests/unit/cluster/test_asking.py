"""Questions about many things: cut into requests, pipelined, asked again where something moved."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, TopicPartition
from pyspark_kafkaproto.cluster.admin import Acl
from pyspark_kafkaproto.cluster.asking import _SHOWN, listed, send_all
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    KafkaProtoError,
    RemoteProtocolError,
    Throttled,
)
from pyspark_kafkaproto.messages.create_acls import CreateAclsResponse
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchResponse
from pyspark_kafkaproto.net import Deadline, Endpoint
from tests.fake_broker import STALL, Fault, close, metadata
from tests.fake_login import LOGIN, logged_in, want_login

G = OffsetFetchResponse.Group
FIRST = TopicPartition("orders", 0)
NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE = 6, 78


def offset_of(group):
    return int(group.rpartition("-")[2])


def answer(call, code_of=lambda _: 0):
    """Each group has committed its own number for orders-0."""

    def found(group):
        part = G.Topic.Partition(partition_index=0, committed_offset=offset_of(group), metadata="m")
        topics = (G.Topic(name="orders", partitions=(part,)),)
        return G(group_id=group, topics=topics, error_code=code_of(group))

    return OffsetFetchResponse(groups=tuple(found(item.group_id) for item in call.request.groups))


@pytest.mark.slow
def test_thousand_groups_are_ten_requests_on_one_connection_each(brokers, kafka):
    groups = [f"g-{number}" for number in range(1000)]
    for group in groups[500:]:
        brokers.coordinators[group] = 2
    brokers.on("OffsetFetch", answer)
    found = kafka.get_group_offsets(groups)
    assert {group: own[FIRST].offset for group, own in found.items()} == {
        group: offset_of(group) for group in groups
    }
    assert [len(call.groups) for call in brokers.asked("OffsetFetch", node=1)] == [100] * 5
    assert [len(call.groups) for call in brokers.asked("OffsetFetch", node=2)] == [100] * 5
    assert len(brokers.asked("FindCoordinator")) == 1
    places = {
        (call.node_id, call.connection) for call in brokers.calls if call.api == "OffsetFetch"
    }
    assert len(places) == 2


@pytest.mark.slow
def test_more_requests_than_may_be_in_flight_are_all_answered(brokers, kafka):
    brokers.on("OffsetFetch", answer)
    groups = [f"g-{number}" for number in range(2050)]
    assert len(kafka.get_group_offsets(groups)) == 2050
    assert len(brokers.asked("OffsetFetch")) == 21


@pytest.mark.parametrize("again", [logged_in(), close()])
def test_what_is_in_flight_is_answered_before_a_login_is_renewed(brokers, kafka_at, again):
    """And kept, whatever becomes of that."""
    want_login(brokers)
    brokers.on("SaslAuthenticate", logged_in(), again)
    router = kafka_at(brokers.address(), **LOGIN)._router

    def end_login(call):
        if len(brokers.asked("Metadata")) == 3:
            (connection,) = router.connections.kept
            connection._renew_login_at = 0.0
        return metadata(brokers, call)

    brokers.on("Metadata", end_login)
    questions = [(Endpoint.parse(brokers.address()), MetadataRequest(topics=()))] * 20
    answers = send_all(router, questions, Deadline.after(5))
    order = [call.api for call in brokers.calls]
    renewal = order.index("SaslHandshake", order.index("Metadata"))
    before, behind = (part.count("Metadata") for part in (order[:renewal], order[renewal:]))
    assert 3 <= before < 20
    assert behind == (0 if isinstance(again, Fault) else 20 - before)
    are_answers = [isinstance(answer, MetadataResponse) for answer in answers]
    assert are_answers == [True] * (before + behind) + [False] * (20 - before - behind)


def test_what_is_in_flight_as_a_broker_throttles_is_answered_all_the_same(brokers, kafka):
    """Only what did not leave is told not to have: of that others say that nothing was done."""

    def throttled(call):
        answer = metadata(brokers, call)
        return MetadataResponse(
            brokers=answer.brokers, topics=answer.topics, throttle_time_ms=100_000
        )

    brokers.on("Metadata", throttled)
    questions = [(Endpoint.parse(brokers.address()), MetadataRequest(topics=()))] * 20
    answers = send_all(kafka._router, questions, Deadline.after(5))
    asked = len(brokers.asked("Metadata"))
    assert 1 < asked < 20
    are_answers = [isinstance(answer, MetadataResponse) for answer in answers]
    assert are_answers == [True] * asked + [False] * (20 - asked)
    assert all(isinstance(answer, Throttled) for answer in answers[asked:])


def test_only_what_moved_is_asked_for_again(brokers, kafka, clock):
    def move_some(call):
        brokers.coordinators |= {"g-3": 2}
        return answer(call, lambda group: 16 if group == "g-3" else 0)

    brokers.on("OffsetFetch", move_some, node=1)
    brokers.on("OffsetFetch", answer, node=2)
    found = kafka.get_group_offsets([f"g-{number}" for number in range(5)])
    assert {offset_of(group): own[FIRST].offset for group, own in found.items()} == {
        number: number for number in range(5)
    }
    (again,) = brokers.asked("OffsetFetch", node=2)
    assert [item.group_id for item in again.groups] == ["g-3"]


def test_what_moved_is_looked_up_whatever_else_is_to_be_asked_again(brokers, kafka, clock):
    """Also where what comes first among the failures has not moved."""
    answers_of = ListOffsetsResponse.Topic

    def offsets(call, codes):
        asked = [item.partition_index for item in call.request.topics[0].partitions]
        found = (
            answers_of.Partition(partition_index=number, offset=7, error_code=codes.get(number, 0))
            for number in asked
        )
        return ListOffsetsResponse(topics=(answers_of(name="orders", partitions=tuple(found)),))

    def move_one(call):
        brokers.topics["orders"].move(1, 2)
        return offsets(call, {0: OFFSET_NOT_AVAILABLE, 1: NOT_LEADER_OR_FOLLOWER})

    stay = {1: NOT_LEADER_OR_FOLLOWER}
    brokers.on("ListOffsets", move_one, lambda call: offsets(call, stay), node=1)
    brokers.on("ListOffsets", lambda call: offsets(call, {}), node=2)
    both = {FIRST, TopicPartition("orders", 1)}
    assert kafka.get_latest_leader_offsets(both).keys() == both
    assert len(brokers.asked("ListOffsets", node=1)) == 2
    assert len(brokers.asked("ListOffsets", node=2)) == 1
    assert len(clock.slept) == 1


def test_error_for_good_keeps_the_other_answers(brokers, kafka, clock):
    brokers.on("OffsetFetch", lambda call: answer(call, lambda g: 30 if g == "g-1" else 0))
    with pytest.raises(BrokerError, match=r"group 'g-1'.*GROUP_AUTHORIZATION_FAILED") as caught:
        kafka.get_group_offsets({"g-0", "g-1", "g-2"})
    assert caught.value.usable.keys() == {"g-0", "g-2"}
    assert clock.slept == []


def test_lost_connection_loses_only_its_own_requests(brokers, kafka, clock):
    brokers.coordinators["g-2"] = 2
    brokers.on("OffsetFetch", close(), answer, node=1)
    brokers.on("OffsetFetch", answer, node=2)
    found = kafka.get_group_offsets({"g-1", "g-2"})
    assert found.keys() == {"g-1", "g-2"}
    assert len(brokers.asked("OffsetFetch", node=2)) == 1


def test_broker_that_is_not_reached_is_reached_for_once(brokers, kafka, monkeypatch):
    """Whatever it was to be asked: each time might take all that connecting may take."""
    tried = []

    def connect(endpoint, deadline):
        tried.append(endpoint)
        raise ConnectionFailed(str(endpoint), "connect", f"attempt {len(tried)}")

    monkeypatch.setattr(kafka._router, "connect", connect)
    place = Endpoint.parse(brokers.address())
    answers = send_all(kafka._router, [(place, MetadataRequest())] * 20, Deadline.after(5))
    assert tried == [place]
    assert ["attempt 1" in str(answer) for answer in answers] == [True] * 20


@pytest.mark.slow
@pytest.mark.parametrize("silent", [1, 2])
def test_who_is_silent_to_the_end_keeps_no_other_answer_from_being_told(brokers, kafka_at, silent):
    folder = DescribeLogDirsResponse.LogDir(log_dir="/data")
    brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder,)))
    brokers.on("DescribeLogDirs", STALL, node=silent)
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "500"})
    with pytest.raises(KafkaProtoError, match=brokers.address(silent)) as caught:
        kafka.describe_log_dirs()
    assert caught.value.usable.keys() == {1, 2} - {silent}


@pytest.mark.slow
@pytest.mark.parametrize("timeout_ms", [1500, 300])
def test_an_answer_that_came_while_others_were_reached_for_is_taken(
    brokers, kafka_at, hole, timeout_ms
):
    """Though its time, or all of it, has gone by: the second one took that."""
    folder = DescribeLogDirsResponse.LogDir(log_dir="/data")
    brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder,)))
    brokers.advertised = {2: hole}
    given = {"request.timeout.ms": "300", "socket.connection.setup.timeout.ms": "300"}
    given |= {"default.api.timeout.ms": str(timeout_ms)}
    with pytest.raises(KafkaProtoError, match="no answer within") as caught:
        kafka_at(brokers.bootstrap_servers, **given).describe_log_dirs()
    assert caught.value.usable.keys() == {1}


def test_answer_about_a_group_that_was_not_asked_for_is_refused(brokers, kafka):
    def another(call):
        said = answer(call)
        return OffsetFetchResponse(groups=(*said.groups, G(group_id="g-9")))

    brokers.on("OffsetFetch", another)
    with pytest.raises(RemoteProtocolError, match="g-9: answered, but not asked about"):
        kafka.get_group_offsets({"g-1"})


def test_answer_that_is_about_something_else_hides_nothing_that_others_have_done(brokers, kafka):
    part = IncrementalAlterConfigsResponse.Resource
    done = part(resource_type=4, resource_name="2")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=()), node=1)
    brokers.on(
        "IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(done,)), node=2
    )
    first, second = ConfigResource("broker", "1"), ConfigResource("broker", "2")
    change = [ConfigChange("background.threads", "4")]
    place = brokers.address(1)
    with pytest.raises(RemoteProtocolError, match=f"broker {place}: .*: not answered") as caught:
        kafka.alter_configs({first: change, second: change})
    assert caught.value.usable.keys() == {second}


def test_answer_with_too_few_results_names_its_broker(brokers, kafka):
    brokers.on("CreateAcls", CreateAclsResponse())
    acl = Acl("topic", "orders", principal="User:a", operation="read")
    place = brokers.address(1)
    with pytest.raises(RemoteProtocolError, match=f"broker {place}.*asked about 1, answered 0"):
        kafka.create_acls([acl])


def test_interrupted_question_leaves_no_answer_for_the_next_one(brokers, kafka, monkeypatch):
    brokers.on("OffsetFetch", answer)
    kafka.get_group_offsets({"g-1"})
    (held,) = kafka._router.connections.kept
    monkeypatch.setattr(held, "receive", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        kafka.get_group_offsets({"g-1"})
    assert not held.is_open
    assert kafka.get_group_offsets({"g-7"})["g-7"][FIRST].offset == 7


def test_list_of_names_tells_how_many_it_leaves_out():
    names = [f"g-{number}" for number in range(_SHOWN + 1)]
    assert listed(names[:-1]) == ", ".join(names[:-1])
    assert listed(names) == ", ".join(names[:-1]) + " and 1 more"


def _interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_advertised_address_that_is_not_reached_says_what_to_set(brokers, kafka_at, caplog):
    brokers.advertised = {1: ("nowhere.invalid", 9092), 2: ("nowhere.invalid", 9093)}
    # Two tries, the second well before the end: one that the end cuts off would be told, too.
    times = {"default.api.timeout.ms": "1500", "retry.backoff.ms": "1000"}
    kafka = kafka_at(brokers.address(1), **times)
    with pytest.raises(ConnectionFailed) as caught:
        kafka.get_latest_leader_offsets({FIRST})
    told = str(caught.value)
    assert "resolve failed" in told
    assert f"asked, {brokers.address(1)}, advertises this address, nowhere.invalid:9092" in told
    assert f"advertised.listeners=PLAINTEXT://{brokers.address(1)}" in told
    assert len([text for text in caplog.messages if text in told]) == 1, "it was tried for 1.5 s"


def test_address_that_the_user_gave_is_not_called_advertised(kafka_at):
    kafka = kafka_at("127.0.0.1:1", **{"socket.connection.setup.timeout.ms": "50"})
    with pytest.raises(ConnectionFailed) as caught:
        kafka.describe()
    assert "advertise" not in str(caught.value)


def test_nor_is_one_of_several_of_which_another_answered(brokers, kafka_at, caplog):
    brokers.stop(2)
    brokers.topics["orders"].move(0, 2)
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "200"})
    with pytest.raises(KafkaProtoError, match="connect failed") as caught:
        kafka.get_latest_leader_offsets({FIRST})
    assert "advertise" not in str(caught.value)
    assert "advertise" not in caplog.text


def test_nor_is_one_that_was_reached_before(brokers, kafka_at, caplog):
    """In a rolling restart each broker is away for a while."""
    brokers.topics["orders"].move(0, 2)
    kafka = kafka_at(brokers.address(1), **{"default.api.timeout.ms": "200"})
    kafka.get_latest_leader_offsets({FIRST})
    brokers.stop(2)
    with pytest.raises(KafkaProtoError, match="connect failed") as caught:
        kafka.get_latest_leader_offsets({FIRST})
    assert "advertise" not in str(caught.value)
    assert "advertise" not in caplog.text
