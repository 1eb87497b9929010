"""Committed offsets at the groups' coordinators."""

import pytest

from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember, commit_offsets, fetch_offsets
from pyspark_kafkaproto.errors import BrokerError, ConfigError, RemoteProtocolError
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorResponse
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitResponse
from pyspark_kafkaproto.messages.offset_delete import OffsetDeleteResponse
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchResponse
from tests.fake_broker import DEFAULT, close, find_coordinator, topic_id_of
from tests.unit.cluster.committing import FakeCoordinator, unstable

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
OTHER = TopicPartition("empty", 0)
G = OffsetFetchResponse.Group


def fetched(*codes, offsets=(7, -1), group_code=0):
    """An OffsetFetch answer for `orders`, with an error per partition."""
    partitions = tuple(
        G.Topic.Partition(partition_index=number, committed_offset=offset, error_code=code)
        for number, (offset, code) in enumerate(zip(offsets, codes or (0, 0), strict=True))
    )
    topics = (G.Topic(name="orders", partitions=partitions),)
    return OffsetFetchResponse(groups=(G(group_id="g", topics=topics, error_code=group_code),))


def committed(*codes):
    """An OffsetCommit answer for `orders`, with an error per partition."""
    partitions = tuple(
        OffsetCommitResponse.Topic.Partition(partition_index=number, error_code=code)
        for number, code in enumerate(codes)
    )
    topic = OffsetCommitResponse.Topic(name="orders", partitions=partitions)
    return OffsetCommitResponse(topics=(topic,))


def committed_all(call):
    """An answer that all is well."""
    partition = OffsetCommitResponse.Topic.Partition
    topics = tuple(
        OffsetCommitResponse.Topic(
            name=topic.name,
            partitions=tuple(
                partition(partition_index=item.partition_index) for item in topic.partitions
            ),
        )
        for topic in call.request.topics
    )
    return OffsetCommitResponse(topics=topics)


def test_committed_offsets_are_found_and_missing_ones_left_out(brokers, kafka):
    brokers.on("OffsetFetch", fetched())
    assert kafka.get_consumer_offsets("g", {FIRST, SECOND}) == {FIRST: 7}
    (request,) = brokers.asked("OffsetFetch")
    (group,) = request.groups
    assert group.group_id == "g"
    assert [(topic.name, topic.partition_indexes) for topic in group.topics] == [("orders", (0, 1))]
    assert request.require_stable


def test_commit_goes_out_as_from_nobodys_member(brokers, kafka):
    brokers.on("OffsetCommit", committed_all)
    kafka.set_consumer_offsets("g", {SECOND: 8, FIRST: 7, OTHER: 0})
    (request,) = brokers.asked("OffsetCommit")
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == (
        *("g", -1),
        "",
    )
    assert {
        (topic.name, item.partition_index): item.committed_offset
        for topic in request.topics
        for item in topic.partitions
    } == {("orders", 0): 7, ("orders", 1): 8, ("empty", 0): 0}
    assert len(request.topics) == 2


@pytest.mark.parametrize("most", [9, 10, 99])
def test_topics_are_named_and_never_meant_by_id(brokers, kafka, most):
    brokers.versions |= {"OffsetFetch": (1, most), "OffsetCommit": (2, most)}
    brokers.on("OffsetFetch", fetched())
    brokers.on("OffsetCommit", committed(0))
    kafka.get_consumer_offsets("g", {FIRST})
    kafka.set_consumer_offsets("g", {FIRST: 1})
    versions = [call.header.api_version for call in brokers.calls if "Offset" in call.api]
    assert versions == [9, 9]


@pytest.mark.parametrize("knows", [("orders", "empty"), ("orders",)])
def test_topics_are_meant_by_id_where_all_of_them_are_known_by_one(brokers, kafka, knows):
    coordinator = FakeCoordinator(brokers)
    offsets = {FIRST: CommittedOffset(7), OTHER: CommittedOffset(0)}
    ids = {name: topic_id_of(name) for name in knows}
    commit_offsets(kafka._router, {"g": offsets}, topic_ids=ids)
    said = {(topic.name, topic.topic_id) for topic in brokers.asked("OffsetCommit")[0].topics}
    if len(knows) == 2:
        assert said == {("", topic_id) for topic_id in ids.values()}
    else:
        assert said == {(name, bytes(16)) for name in ("orders", "empty")}
    assert coordinator.offsets["g"] == {tuple(FIRST): (7, ""), tuple(OTHER): (0, "")}


def test_offsets_of_a_topic_that_is_gone_are_not_committed_to_another_of_its_name(
    brokers, kafka, clock
):
    coordinator = FakeCoordinator(brokers)
    offsets, ids = {"g": {FIRST: CommittedOffset(7)}}, {"orders": topic_id_of("orders before")}
    with pytest.raises(BrokerError, match=r"orders-0.*UNKNOWN_TOPIC_ID.*was deleted"):
        commit_offsets(kafka._router, offsets, GroupMember("m", 1), ids)
    assert coordinator.offsets["g"] == {}
    assert 1 <= clock.now - 1000 < 3, "news of one just made may travel so long"


def test_answer_about_another_topic_id_is_refused(brokers, kafka):
    part = OffsetCommitResponse.Topic
    another = part(topic_id=topic_id_of("another"), partitions=(part.Partition(),))
    brokers.on("OffsetCommit", OffsetCommitResponse(topics=(another,)))
    with pytest.raises(RemoteProtocolError):
        commit_offsets(
            kafka._router,
            {"g": {FIRST: CommittedOffset(7)}},
            topic_ids={"orders": topic_id_of("orders")},
        )


def test_coordinator_is_looked_up_once_per_group(brokers, kafka):
    brokers.coordinators["g"] = 2
    brokers.on("OffsetFetch", fetched())
    for _ in range(2):
        kafka.get_consumer_offsets("g", {FIRST})
    (request,) = brokers.asked("FindCoordinator")
    assert (request.key_type, request.coordinator_keys) == (0, ("g",))
    assert len(brokers.asked("OffsetFetch", node=2)) == 2


def _leave(brokers):
    """The first node says that the second coordinates now."""

    def answer(call):
        brokers.coordinators["g"] = 2
        return fetched(group_code=16)

    return answer


def _hang_up(brokers):
    def answer(call):
        brokers.coordinators["g"] = 2
        return close()

    return answer


@pytest.mark.parametrize("move", [_leave, _hang_up])
def test_moved_coordinator_is_followed(brokers, kafka, clock, move):
    brokers.on("OffsetFetch", move(brokers), node=1)
    brokers.on("OffsetFetch", fetched(), node=2)
    assert kafka.get_consumer_offsets("g", {FIRST}) == {FIRST: 7}
    assert len(brokers.asked("FindCoordinator")) == 2


def test_moved_coordinator_is_followed_by_a_commit(brokers, kafka, clock):
    def leave(call):
        brokers.coordinators["g"] = 2
        return committed(16, 16)

    brokers.on("OffsetCommit", leave, node=1)
    brokers.on("OffsetCommit", committed(0, 0), node=2)
    kafka.set_consumer_offsets("g", {FIRST: 7, SECOND: 8})
    assert len(brokers.asked("OffsetCommit", node=2)) == 1


@pytest.mark.parametrize(
    ("ask", "topic"),
    [
        (lambda kafka: kafka.get_consumer_offsets("g", {FIRST}), "__consumer_offsets"),
        (lambda kafka: kafka.describe_transactions({"g"}), "__transaction_state"),
    ],
)
def test_who_has_no_coordinator_for_long_is_told_where_to_look(brokers, kafka, clock, ask, topic):
    missing = FindCoordinatorResponse.Coordinator(key="g", error_code=15)
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(missing,)))
    told = rf"'g': COORDINATOR_NOT_AVAILABLE.*{topic} has no leader.*kafkaproto metadata {topic}"
    with pytest.raises(BrokerError, match=told):
        ask(kafka)


@pytest.mark.parametrize("code", [14, 15])
def test_coordinator_that_is_not_ready_is_waited_for(brokers, kafka, clock, code):
    refusal = FindCoordinatorResponse.Coordinator(key="g", error_code=code, error_message="loading")
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(refusal,)), DEFAULT)
    brokers.on("OffsetFetch", fetched(group_code=14), fetched(88, 0), fetched())
    assert kafka.get_consumer_offsets("g", {FIRST}) == {FIRST: 7}
    assert len(clock.slept) == 3


def test_group_that_may_not_be_seen_fails_at_once_with_the_brokers_text(brokers, kafka, clock):
    refusal = FindCoordinatorResponse.Coordinator(key="g", error_code=30, error_message="not you")
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(refusal,)))
    with pytest.raises(BrokerError, match=r"group 'g': GROUP_AUTHORIZATION_FAILED.*not you"):
        kafka.get_consumer_offsets("g", {FIRST})
    assert clock.slept == []


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        (fetched(group_code=30), "group 'g' at"),
        (fetched(0, 30), "group 'g', partition orders-1 at"),
    ],
)
def test_refused_fetch_names_the_subject_and_the_broker(brokers, kafka, clock, answer, subject):
    brokers.on("OffsetFetch", answer)
    with pytest.raises(BrokerError) as caught:
        kafka.get_consumer_offsets("g", {FIRST, SECOND})
    assert f"OffsetFetch: {subject} broker {brokers.address(1)}: GROUP_AUTH" in str(caught.value)
    assert clock.slept == []


def test_refused_commit_keeps_what_was_committed(brokers, kafka, clock):
    brokers.on("OffsetCommit", committed(0, 12))
    with pytest.raises(BrokerError, match=r"orders-1.*OFFSET_METADATA_TOO.*shorter") as caught:
        kafka.set_consumer_offsets("g", {FIRST: 7, SECOND: 8})
    assert caught.value.usable == {FIRST}
    assert len(brokers.asked("OffsetCommit")) == 1


def test_refused_partition_keeps_no_other_from_another_try(brokers, kafka, clock):
    brokers.on("OffsetCommit", committed(14, 29), committed(0))
    with pytest.raises(BrokerError, match="orders-1") as caught:
        kafka.set_consumer_offsets("g", {FIRST: 7, SECOND: 8})
    assert caught.value.usable == {FIRST}
    (again,) = brokers.asked("OffsetCommit")[1:]
    assert [item.partition_index for item in again.topics[0].partitions] == [0]


def test_group_that_may_not_be_seen_keeps_no_other_from_its_commit(brokers, kafka, clock):
    def find(call):
        found = find_coordinator(brokers, call).coordinators
        return FindCoordinatorResponse(
            coordinators=tuple(
                type(item)(key=item.key, error_code=30) if item.key == "closed" else item
                for item in found
            )
        )

    brokers.on("FindCoordinator", find)
    brokers.on("OffsetCommit", committed_all)
    with pytest.raises(BrokerError, match=r"group 'closed'.*GROUP_AUTHORIZATION_FAILED") as caught:
        kafka.set_group_offsets({"closed": {FIRST: 1}, "open": {FIRST: 7}})
    assert caught.value.usable.keys() == {("open", FIRST)}


def test_commit_into_a_group_with_members_says_what_to_do(brokers, kafka, clock):
    brokers.on("OffsetCommit", committed(25, 25))
    with pytest.raises(BrokerError, match=r"live members.*a group of its own"):
        kafka.set_consumer_offsets("g", {FIRST: 7, SECOND: 8})
    assert clock.slept == []


def test_offsets_of_a_group_of_others_than_consumers_are_not_deleted(brokers, kafka, clock):
    brokers.on("OffsetDelete", OffsetDeleteResponse(error_code=68))
    with pytest.raises(BrokerError, match=r"group 'g'.*NON_EMPTY_GROUP.*stop them first"):
        kafka.delete_consumer_offsets("g", {FIRST})
    assert clock.slept == []


def test_commit_for_a_missing_partition_is_not_tried_for_a_minute(brokers, kafka, clock):
    brokers.on("OffsetCommit", committed(3))
    with pytest.raises(BrokerError, match="no such topic or partition"):
        kafka.set_consumer_offsets("g", {FIRST: 7})
    assert clock.now - 1000 <= 1


@pytest.mark.parametrize("groups", [(), (G(group_id="other"),)])
def test_answer_about_no_or_another_group_is_refused(brokers, kafka, groups):
    brokers.on("OffsetFetch", OffsetFetchResponse(groups=groups))
    with pytest.raises(RemoteProtocolError, match="g: not answered"):
        kafka.get_consumer_offsets("g", {FIRST})


def test_answer_about_no_coordinator_is_refused(brokers, kafka):
    brokers.on("FindCoordinator", FindCoordinatorResponse())
    with pytest.raises(RemoteProtocolError, match="FindCoordinator: g: not answered"):
        kafka.get_consumer_offsets("g", {FIRST})


def test_partition_that_a_commit_leaves_unanswered_is_not_taken_for_committed(brokers, kafka):
    brokers.on("OffsetCommit", committed(0))
    with pytest.raises(RemoteProtocolError, match="orders-1: not answered"):
        kafka.set_consumer_offsets("g", {FIRST: 7, SECOND: 8})


def test_nothing_to_commit_or_fetch_is_nothing_sent(brokers, kafka):
    kafka.set_consumer_offsets("g", {})
    assert kafka.get_consumer_offsets("g", set()) == {}
    assert brokers.calls == []


def test_group_needs_a_name(kafka):
    for call in (kafka.get_consumer_offsets, kafka.set_consumer_offsets):
        with pytest.raises(ConfigError, match="name of a group"):
            call("", {})
    with pytest.raises(ConfigError, match="expected the offsets of each group, in a dict"):
        kafka.set_group_offsets([("g", {FIRST: 3})])


def test_negative_offset_is_refused_here(brokers, kafka):
    with pytest.raises(ConfigError, match=r"offset of orders-0.*-1"):
        kafka.set_consumer_offsets("g", {FIRST: -1})
    assert brokers.calls == []


def test_brokers_that_cannot_wait_for_transactions_are_asked_without(brokers, kafka):
    FakeCoordinator(brokers, g={("orders", 0): (7, "")})
    brokers.versions |= {"OffsetFetch": (1, 5), "FindCoordinator": (0, 2)}
    assert kafka.get_consumer_offsets("g", {FIRST, SECOND}) == {FIRST: 7}
    (request,) = brokers.asked("OffsetFetch")
    assert not request.require_stable


@pytest.mark.parametrize("most_s", [0, 2])
def test_what_a_transaction_holds_is_waited_for_no_longer_than_is_said(
    brokers, kafka, clock, most_s
):
    FakeCoordinator(brokers)
    brokers.on("OffsetFetch", unstable)
    began = clock.now
    told = r"UNSTABLE_OFFSET_COMMIT \(88\): an open transaction holds .*`kafkaproto transactions"
    with pytest.raises(BrokerError, match=told):
        fetch_offsets(kafka._router, {"g"}, unstable_s=most_s)
    assert most_s <= clock.now - began < most_s + 1


def test_each_group_is_looked_up_where_brokers_take_one_key(brokers, kafka):
    FakeCoordinator(brokers, a={("orders", 0): (1, "")}, b={("orders", 0): (2, "")})
    brokers.coordinators["b"] = 2
    brokers.versions["FindCoordinator"] = (0, 3)
    found = kafka.get_group_offsets({"a", "b"})
    assert [found[group][FIRST].offset for group in "ab"] == [1, 2]
    assert [item.key for item in brokers.asked("FindCoordinator")] == ["a", "b"]


def test_a_refusal_about_one_key_names_it(brokers, kafka):
    brokers.versions["FindCoordinator"] = (0, 3)
    brokers.on("FindCoordinator", FindCoordinatorResponse(error_code=30))
    with pytest.raises(BrokerError, match=r"group 'g'.*GROUP_AUTHORIZATION_FAILED"):
        kafka.get_consumer_offsets("g", {FIRST})
