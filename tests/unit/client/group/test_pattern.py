"""Members of the classic protocol that subscribe to topics by a pattern: they look themselves."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import Consumer
from pyspark_kafkaproto.client.group.classic import keeper
from pyspark_kafkaproto.client.group.classic.subscription import assignment_bytes, read_subscriber
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern, checked_names
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.members import read_assignment
from pyspark_kafkaproto.cluster.routing import OPINIONS
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from pyspark_kafkaproto.net import ConsumerConfig
from tests.examples import marked
from tests.fake_broker import DEFAULT
from tests.fake_log import Answered
from tests.fake_past import behind
from tests.unit.client.group.fake_group import Subscriber
from tests.unit.client.group.fake_sharing import FakeSharing
from tests.unit.client.group.happenings import TopicHappenings
from tests.unit.client.group.polling import poll_rows, poll_together, poll_until

ORDERS = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)})
UNKNOWN_TOPIC_ID = 100
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}


@pytest.fixture(params=[{}, COOPERATIVE], ids=["eager", "cooperative"])
def pattern_of(request, consumer_of):
    """Opens a member that reads what matches, and looks all the time; each way of sharing out."""

    def open_consumer(pattern="orders.*", listeners=None, **properties):
        given = {"metadata_max_age_ms": 50} | request.param | properties
        return consumer_of(SubscriptionPattern(pattern), listeners, **given)

    return open_consumer


@pytest.fixture
def sharing(brokers):
    """The coordinator of group `g` with all its members, at node 1."""
    return FakeSharing(brokers)


def subscribed(brokers):
    """The topics that each JoinGroup named."""
    told = [item.protocols[0].metadata for item in brokers.asked("JoinGroup")]
    part = JoinGroupResponse.Member
    return [set(read_subscriber(part(metadata=item), "g", "range").topics) for item in told]


def topics_of(consumer):
    return {item.topic for item in consumer.assignment}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        ("orders.*", {"orders", "orders-eu"}),
        ("orders", {"orders"}),
        ("orders|orders-eu", {"orders", "orders-eu"}),
        ("eu", set()),
        (".*eu", {"orders-eu", "_eu"}),
        ("(?!orders).*", {"many", "_eu"}),
    ],
)
def test_the_whole_name_matches_as_in_java(filled, group, consumer_of, pattern, topics):
    """The alternative that matches less does not hide the one that matches all."""
    for name in ("orders-eu", "_eu", "__eu", "not-for-us-eu"):
        filled.add_topic(name)
    filled.topics["__eu"].is_internal = True
    filled.topics["not-for-us-eu"].error_code = 29
    consumer = consumer_of(SubscriptionPattern(pattern))
    poll_until(consumer, lambda: group.generation, "a generation")
    assert subscribed(filled)[-1] == topics


@pytest.mark.slow
def test_internal_topics_are_there_for_who_wants_them(filled, group, consumer_of):
    filled.add_topic("__orders")
    filled.topics["__orders"].is_internal = True
    consumer = consumer_of(SubscriptionPattern(".*orders"), exclude_internal_topics=False)
    poll_until(consumer, lambda: topics_of(consumer) == {"orders", "__orders"}, "both")


@pytest.mark.slow
def test_nothing_matches_until_a_topic_is_made(filled, group, pattern_of, monkeypatch):
    """Which is looked for soon, not after metadata.max.age.ms."""
    monkeypatch.setattr(keeper, "_FIRST_LOOK_S", 0.05)
    log = filled.logs["orders", 0]
    topic = filled.topics.pop("orders")
    consumer = pattern_of(metadata_max_age_ms=300_000)
    looked = len(filled.asked("Metadata"))
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > looked + 5, "looks")
    assert (group.generation, consumer.assignment) == (1, frozenset())
    assert consumer.member_id
    filled.topics["orders"] = topic
    assert len(poll_rows(consumer, 40)) == 40
    assert log is filled.logs["orders", 0]
    assert subscribed(filled)[-1] == {"orders"}


@pytest.mark.slow
def test_a_topic_that_is_made_is_read(filled, group, pattern_of):
    consumer = pattern_of()
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.add_topic("orders-2")
        filled.logs["orders-2", 0].fill(1)
        filled.add_topic("others")
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10)]
    assert topics_of(consumer) == {"orders", "orders-2"}


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_a_topic_that_is_deleted_is_left(filled, group, pattern_of):
    filled.add_topic("orders-2")
    filled.logs["orders-2", 0].fill(1)
    consumer = pattern_of()
    poll_rows(consumer, 50)
    del filled.topics["orders-2"]
    poll_until(consumer, lambda: topics_of(consumer) == {"orders"}, "its being left")
    filled.logs["orders", 1].append(b"more")
    assert poll_rows(consumer, 1) == [(1, 20)]


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_what_is_deleted_is_given_up_before_it_joins_again(filled, sharing, consumer_of, noted):
    """A leader may have members keep what they claim, whatever they subscribe to."""
    filled.add_topic("orders-2")
    gone = frozenset({TopicPartition("orders-2", 0)})
    pattern = SubscriptionPattern("orders.*")
    # Without commits: of what is deleted they are tried for a second.
    rest = {"metadata_max_age_ms": 50, "enable_auto_commit": "false", **COOPERATIVE}
    consumer = consumer_of(pattern, noted.listeners(), **rest)
    poll_until(consumer, lambda: consumer.assignment == ORDERS | gone, "all")
    joins = len(sharing.claims)
    del filled.topics["orders-2"]
    poll_until(consumer, lambda: len(sharing.claims) > joins, "another generation")
    assert [claim.partitions for _, claim in sharing.claims[joins:]] == [ORDERS]
    assert noted == [("assigned", ORDERS | gone), ("revoked", gone)]
    assert subscribed(filled)[-1] == {"orders"}


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_what_a_leader_gives_beside_the_subscription_is_not_read(filled, group, pattern_of):
    def give_all(call):
        every = [*ORDERS, TopicPartition("many", 0)]
        group.sync(call)
        return SyncGroupResponse(assignment=assignment_bytes(every))

    filled.on("SyncGroup", give_all)
    consumer = pattern_of()
    poll_rows(consumer, 40)
    assert consumer.assignment == ORDERS


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_the_last_topic_that_is_deleted_is_no_error(filled, group, pattern_of, monkeypatch):
    """The reader finds it gone before the next look, which comes sooner then."""
    monkeypatch.setattr(keeper, "_FIRST_LOOK_S", 0.05)
    consumer = pattern_of(metadata_max_age_ms=3_600_000)
    poll_rows(consumer, 40)
    consumer.commit()
    topic = filled.topics.pop("orders")
    poll_until(consumer, lambda: not consumer.assignment, "its being left")
    filled.topics["orders"] = topic
    filled.logs["orders", 1].append(b"more")
    assert poll_rows(consumer, 1) == [(1, 20)]


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_what_is_looked_up_for_the_reader_is_not_looked_up_again_until_it_polls(
    filled, group, pattern_of
):
    consumer = pattern_of(metadata_max_age_ms=3_600_000)
    poll_rows(consumer, 40)
    looked, beats = len(filled.asked("Metadata")), len(filled.asked("Heartbeat"))
    with filled.at_once():
        del filled.topics["orders"]
        consumer._keeper._doubt = keeper.Doubt.RAISED
    filled.wait_for_call("Heartbeat", beats + 20)
    # And once more before it joins again, where it need not wait for that.
    assert 0 < len(filled.asked("Metadata")) - looked <= OPINIONS + 1


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_a_topic_that_matches_and_cannot_be_read_is_an_error(filled, group, pattern_of):
    consumer = pattern_of(default_api_timeout_ms=1000)
    poll_rows(consumer, 40)

    def gone(call):
        found = tuple(
            FetchResponse.Topic(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    Answered(partition_index=item.partition, error_code=UNKNOWN_TOPIC_ID)
                    for item in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
        return FetchResponse(responses=found)

    filled.on("Fetch", gone)
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_ID"):
        poll_until(consumer, lambda: False, "the error")


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_a_broker_that_is_behind_takes_no_topic_away(filled, group, pattern_of):
    consumer = pattern_of()
    poll_rows(consumer, 40)
    looked = len(filled.asked("Metadata"))
    filled.on("Metadata", behind(filled, "orders", None), DEFAULT)
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > looked + 4, "looks")
    assert group.generation == 1


@pytest.mark.slow
def test_the_leader_shares_out_what_others_subscribe_to(filled, group, pattern_of):
    """Topics, too, that its own pattern does not mean."""
    group.others = (Subscriber("other", ("many",)),)
    consumer = pattern_of(partition_assignment_strategy="range")
    poll_until(consumer, lambda: consumer.assignment == ORDERS, "ours")
    others = read_assignment(group.shared["other"], "a test")
    assert {item.topic for item in others} == {"many"}
    assert len(others) == 250
    generation = group.generation
    filled.add_topic("many", 251)
    poll_until(consumer, lambda: group.generation > generation, "what others need")


@pytest.mark.slow
def test_a_member_that_does_not_lead_looks_too(filled, sharing, pattern_of, consumer_of):
    """The leader wants other topics, and does not hear of this one."""
    leader, rows = consumer_of(("many",), metadata_max_age_ms=3_600_000), []
    poll_until(leader, lambda: leader.assignment, "the leader")
    ours = pattern_of(partition_assignment_strategy="range,roundrobin,cooperative-sticky")
    poll_together([leader, ours], rows, lambda: len(rows) >= 40, "what is there")
    filled.add_topic("orders-2")
    filled.logs["orders-2", 0].fill(1)
    poll_together([leader, ours], rows, lambda: len(rows) >= 50, "what has come")
    # The rows may be there before the leader has its own again.
    poll_together([leader, ours], rows, lambda: leader.assignment and ours.assignment, "both")
    assert topics_of(ours) == {"orders", "orders-2"}
    assert topics_of(leader) == {"many"}


@pytest.mark.slow
def test_a_new_topic_has_members_share_out_once(filled, sharing, pattern_of):
    """Who joins since somebody else has heard of it has looked before that."""
    age = {"metadata_max_age_ms": 3_600_000, "partition_assignment_strategy": "range"}
    one, other, rows = pattern_of(**age), pattern_of(**age), []
    poll_together([one, other], rows, lambda: one.assignment and other.assignment, "both")
    generation = sharing.generation
    filled.add_topic("orders-2", 2)
    one._keeper._look_at = 0
    poll_together(
        [one, other],
        rows,
        lambda: topics_of(one) == topics_of(other) == {"orders", "orders-2"},
        "the new topic",
    )
    assert sharing.generation == generation + 1


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a(", r"'topics' is 'a\(': expected a regular expression of Python's.*RE2/J"),
        (r"\p{Lower}+", r"\\p\{Lower\}.*bad escape.*group\.protocol=consumer"),
        ("a-[a-z&&[^b]]", "a set in a set"),
        ("", "is all topics"),
        (" ", "not nothing"),
        (b"a", "is all topics"),
    ],
)
def test_what_is_no_pattern_is_named(brokers, pattern, text):
    config = {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g"}
    with pytest.raises(ConfigError, match=text):
        Consumer(config, SubscriptionPattern(pattern))


def test_brokers_that_look_are_not_told_what_is_internal(brokers):
    given = {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g"}
    given |= {"group.protocol": "consumer", "exclude.internal.topics": "false"}
    with pytest.raises(ConfigError, match=r"'exclude\.internal\.topics'.*the brokers choose"):
        ConsumerConfig.parse(given)


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
@pytest.mark.parametrize("seed", [*range(4), *marked("long", range(4, 12))])
def test_each_row_is_read_once_while_topics_and_members_come_and_go(
    filled, sharing, pattern_of, seed
):
    answers = {"JoinGroup": sharing.join, "SyncGroup": sharing.sync, "Heartbeat": sharing.beat}
    TopicHappenings(seed, filled, pattern_of, answers).check_each_row_once(80)


def test_names_that_come_once_are_all_subscribed_to():
    """As of a generator: whoever looked at them would have none left."""
    assert checked_names(iter(["orders", "more"])) == {"orders", "more"}
