"""Topics, records and configurations changed: who is asked for it, and what refusals say."""

from __future__ import annotations

import re

import pytest

from pyspark_kafkaproto.cluster import (
    Change,
    ConfigChange,
    ConfigResource,
    NewTopic,
    TopicPartition,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DeadlineExceeded
from pyspark_kafkaproto.messages.create_partitions import CreatePartitionsResponse
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from pyspark_kafkaproto.messages.delete_records import DeleteRecordsResponse
from pyspark_kafkaproto.messages.delete_topics import DeleteTopicsResponse
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.fake_broker import close, topic_id_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
ORDERS_ID = topic_id_of("orders")
TOPIC, BROKER = ConfigResource("topic", "orders"), ConfigResource("broker", "2")


def created(message=None, **codes):
    part = CreateTopicsResponse.Topic
    return CreateTopicsResponse(
        topics=tuple(
            part(name=name, error_code=code, error_message=message) for name, code in codes.items()
        )
    )


def test_topic_is_asked_of_the_controller_with_all_that_was_said(brokers, kafka):
    brokers.controller = 2
    brokers.on("CreateTopics", created(a=0, b=0))
    plain = NewTopic("a", 3, 2, {"retention.ms": "5"})
    kafka.create_topics([plain, NewTopic("b", assignment={0: [1, 2]})], validate_only=True)
    (request,) = brokers.asked("CreateTopics", node=2)
    a, b = request.topics
    assert request.validate_only
    assert (a.num_partitions, a.replication_factor) == (3, 2)
    assert [(item.name, item.value) for item in a.configs] == [("retention.ms", "5")]
    assert (b.num_partitions, b.replication_factor) == (-1, -1)
    assert [(item.partition_index, item.broker_ids) for item in b.assignments] == [(0, (1, 2))]


def test_controller_that_moved_is_looked_up_again(brokers, kafka, clock):
    def move(call):
        brokers.controller = 2
        return created(a=41)

    brokers.on("CreateTopics", move, node=1)
    brokers.on("CreateTopics", created(a=0), node=2)
    kafka.create_topics([NewTopic("a")])
    assert len(brokers.asked("CreateTopics", node=2)) == 1


@pytest.mark.slow
def test_cluster_without_a_controller_is_given_up_at_the_deadline(brokers, kafka, clock):
    brokers.controller = -1
    with pytest.raises((BrokerError, DeadlineExceeded), match="no controller is known"):
        kafka.create_topics([NewTopic("a")])
    assert clock.now - 1000 <= 60


def test_topic_that_cannot_be_made_says_why_and_the_others_are_made(brokers, kafka, clock):
    brokers.on("CreateTopics", created("Topic 'b' already exists.", a=0, b=36))
    with pytest.raises(BrokerError, match=r"topic 'b'.*TOPIC_ALREADY_EXISTS.*exists") as caught:
        kafka.create_topics([NewTopic("a"), NewTopic("b")])
    assert caught.value.usable.keys() == {"a"}


def test_quota_of_changes_is_named_once_however_often_it_was_met(brokers, kafka, clock):
    part = CreateTopicsResponse.Topic
    over = part(name="a", error_code=89)  # brokers send no text with it
    answer = CreateTopicsResponse(throttle_time_ms=148_000, topics=(over,))
    brokers.on("CreateTopics", answer)
    with pytest.raises(DeadlineExceeded, match="controller_mutation_rate") as caught:
        kafka.create_topics([NewTopic("a")])
    told = str(caught.value).splitlines()
    assert len(told) <= 4, told
    assert any("throttles this client for 148 s" in line for line in told)
    assert "may have been done" not in str(caught.value)  # all that left was refused


@pytest.mark.parametrize(
    "wrong",
    [{"partitions": 0}, {"replication_factor": -2}, {"partitions": 1, "assignment": {0: [1]}}],
)
def test_wrong_numbers_are_refused_here(wrong):
    with pytest.raises(ConfigError, match=r"expected 1 or more|leave it out"):
        NewTopic("a", **wrong)


def deleted(code=0):
    """The answer about `orders`, by its id."""
    part = DeleteTopicsResponse.Topic
    item = part(name=None, topic_id=ORDERS_ID, error_code=code)
    return DeleteTopicsResponse(responses=(item,))


def test_delete_and_grow(brokers, kafka):
    brokers.on("DeleteTopics", deleted())
    kafka.delete_topics({"orders"})
    (request,) = brokers.asked("DeleteTopics")
    assert [(item.name, item.topic_id) for item in request.topics] == [(None, ORDERS_ID)]
    grown = CreatePartitionsResponse.Topic(name="a")
    brokers.on("CreatePartitions", CreatePartitionsResponse(results=(grown,)))
    kafka.add_partitions({"a": 5}, validate_only=True)
    (request,) = brokers.asked("CreatePartitions")
    assert [(item.name, item.count, item.assignments) for item in request.topics] == [
        ("a", 5, None)
    ]
    assert request.validate_only


def test_missing_topic_is_not_tried_for_a_minute(brokers, kafka, clock):
    brokers.on("DeleteTopics", deleted())
    with pytest.raises(BrokerError, match=r"topic 'a'.*no such topic") as caught:
        kafka.delete_topics({"a", "orders"})
    assert clock.now - 1000 <= 1
    assert caught.value.usable.keys() == {"orders"}


@pytest.mark.slow
def test_topic_made_anew_after_a_lost_answer_is_not_deleted(brokers, kafka):
    """The second try names the topic that there was."""

    def lost(call):
        brokers.topics["orders"].topic_id = bytes(15) + b"\x09"
        return close()

    brokers.on("DeleteTopics", lost, deleted(100))
    kafka.delete_topics({"orders"})  # that it is gone was our first try's doing
    first, second = brokers.asked("DeleteTopics")
    assert first.topics == second.topics


def test_topic_that_is_gone_before_the_first_try_is_an_error(brokers, kafka, clock):
    brokers.on("DeleteTopics", deleted(100))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*UNKNOWN_TOPIC_ID.*no such topic"):
        kafka.delete_topics({"orders"})
    assert clock.now - 1000 <= 1


def test_old_brokers_are_told_names(brokers, kafka):
    brokers.versions["DeleteTopics"] = (1, 5)
    part = DeleteTopicsResponse.Topic
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=(part(name="orders"),)))
    kafka.delete_topics({"orders"})
    (request,) = brokers.asked("DeleteTopics")
    assert request.topic_names == ("orders",)


def test_topic_that_is_to_be_made_in_two_ways_is_refused(kafka):
    with pytest.raises(ConfigError, match="'a': it is given twice"):
        kafka.create_topics([NewTopic("a", partitions=1), NewTopic("a", partitions=2)])


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("what", ["create", "delete", "grow"])
def test_what_an_earlier_try_may_have_done_is_said(brokers, kafka, clock, what, is_lost):
    """Its answer was lost, and the next one says that there is nothing to be done."""
    gone, few = DeleteTopicsResponse.Topic, CreatePartitionsResponse.Topic
    api, answer, change = {
        "create": ("CreateTopics", created(a=36), lambda: kafka.create_topics([NewTopic("a")])),
        "delete": (
            "DeleteTopics",
            DeleteTopicsResponse(responses=(gone(name="orders", error_code=3),)),
            lambda: kafka.delete_topics({"orders"}),
        ),
        "grow": (
            "CreatePartitions",
            CreatePartitionsResponse(results=(few(name="a", error_code=37),)),
            lambda: kafka.add_partitions({"a": 5}),
        ),
    }[what]
    if what == "delete":
        brokers.versions[api] = (1, 5)  # later ones tell by the topic's id
    brokers.on(api, *([close()] if is_lost else []), answer)
    with pytest.raises(BrokerError, match=r"topic '(a|orders)'") as caught:
        change()
    assert ("an earlier try may have done it" in str(caught.value)) == is_lost


def test_names_are_a_set(kafka):
    with pytest.raises(ConfigError, match="expected a set of names"):
        kafka.delete_topics("orders")


def test_one_name_is_not_the_numbers_of_partitions_of_topics(brokers, kafka):
    with pytest.raises(ConfigError, match="expected how many partitions of each topic, in a dict"):
        kafka.add_partitions("orders")
    assert not brokers.calls


@pytest.mark.slow
def test_what_is_written_after_a_lost_answer_is_not_deleted(brokers, kafka):
    log = brokers.logs["orders", 0].fill(5)
    end = log.stop
    part = DeleteRecordsResponse.Topic

    def lost(call):
        log.fill(5)
        return close()

    done = part(name="orders", partitions=(part.Partition(low_watermark=end),))
    brokers.on("DeleteRecords", lost, DeleteRecordsResponse(topics=(done,)))
    assert kafka.delete_records({FIRST: -1}) == {FIRST: end}
    offsets = [call.topics[0].partitions[0].offset for call in brokers.asked("DeleteRecords")]
    assert offsets == [end, end]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": 5}, "'name'.*expected text"),
        ({"partitions": "4"}, "'partitions'.*expected 1 or more, or -1"),
        ({"partitions": 4.5}, "'partitions'.*expected 1 or more, or -1"),
        ({"partitions": True}, "'partitions'.*expected 1 or more, or -1"),
        ({"partitions": 2**31}, "'partitions'.*expected 1 or more, or -1"),
        ({"replication_factor": "3"}, "'replication_factor'.*expected 1 or more, or -1"),
        ({"replication_factor": 2**15}, "'replication_factor'.*expected 1 or more, or -1"),
        ({"configs": ["retention.ms"]}, "'configs'.*expected the value of each setting"),
        ({"configs": {"retention.ms": 5}}, "'retention.ms'.*expected text"),
        ({"assignment": [[1, 2]]}, "'assignment'.*expected the brokers of each partition"),
        ({"assignment": {"0": [1]}}, "'assignment'.*expected the number of a partition"),
        ({"assignment": {0: "12"}}, "'brokers of partition 0'.*expected ids of brokers"),
        ({"assignment": {0: []}}, "'brokers of partition 0'.*expected ids of brokers"),
    ],
)
def test_what_no_topic_can_have_is_refused_by_name(given, told):
    with pytest.raises(ConfigError, match=told):
        NewTopic(**{"name": "orders"} | given)


@pytest.mark.parametrize("count", ["5", 5.0, None, 0, 2**31])
def test_partitions_are_counted_in_whole_numbers(brokers, kafka, count):
    with pytest.raises(ConfigError, match=r"'partitions of orders'.*expected 1 or more"):
        kafka.add_partitions({"orders": count})
    assert not brokers.asked("CreatePartitions")


@pytest.mark.parametrize("offset", ["7", 7.0, None, -2, 2**63])
def test_offsets_to_delete_up_to_are_whole_numbers(brokers, kafka, offset):
    with pytest.raises(ConfigError, match=f"'offset of {FIRST}'.*0 or more, -1 for all"):
        kafka.delete_records({FIRST: offset})
    assert not brokers.asked("DeleteRecords")


def test_topics_to_make_go_in_as_a_set():
    one = NewTopic("orders", 3, configs={"retention.ms": "1000"})
    same = NewTopic("orders", 3, configs={"retention.ms": "1000"})
    assert {one, same, NewTopic("orders", 3), NewTopic("mails")} == {
        one,
        NewTopic("orders", 3),
        NewTopic("mails"),
    }


@pytest.mark.parametrize("topics", ["orders", {"orders"}, {"orders": 3}, NewTopic("orders"), None])
def test_what_is_no_topic_to_make_is_refused(kafka, topics):
    with pytest.raises(ConfigError, match=r"'topics'.*expected (a set of )?NewTopic\(name"):
        kafka.create_topics(topics)


@pytest.mark.parametrize("resources", [{("topic", "orders")}, TOPIC, "orders", None])
def test_what_is_no_resource_is_refused(kafka, resources):
    told = r"'resources'.*expected (a set of )?ConfigResource\(type, name\)"
    with pytest.raises(ConfigError, match=told):
        kafka.describe_configs(resources)


@pytest.mark.parametrize(
    "changes",
    [
        {"password": "hunter2"},
        [("password", "hunter2")],
        "password=hunter2",
        ConfigChange("password", "hunter2"),
        None,
    ],
)
def test_what_is_no_change_is_refused_and_what_may_be_secret_not_shown(brokers, kafka, changes):
    told = r"changes of topic 'orders'.*expected (a set of )?ConfigChange\(name, value\)"
    with pytest.raises(ConfigError, match=told) as caught:
        kafka.alter_configs({TOPIC: changes})
    assert "hunter2" not in str(caught.value)
    assert not brokers.calls


def test_changes_are_of_a_resource_each(kafka):
    with pytest.raises(ConfigError, match="expected the changes of each resource, in a dict") as e:
        kafka.alter_configs([(TOPIC, {"password": "hunter2"})])
    assert "hunter2" not in str(e.value)


def test_records_are_cut_off_at_their_leaders(brokers, kafka):
    brokers.topics["orders"].move(1, node_id=2)

    def cut(call):
        part = DeleteRecordsResponse.Topic
        (topic,) = call.request.topics
        done = tuple(
            part.Partition(partition_index=item.partition_index, low_watermark=item.offset + 1)
            for item in topic.partitions
        )
        return DeleteRecordsResponse(topics=(part(name="orders", partitions=done),))

    brokers.on("DeleteRecords", cut)
    brokers.logs["orders", 1].fill(5)
    end = brokers.logs["orders", 1].stop
    assert kafka.delete_records({FIRST: 7, SECOND: -1}) == {FIRST: 8, SECOND: end + 1}
    assert len(brokers.asked("DeleteRecords", node=2)) == 1
    with pytest.raises(ConfigError, match="offset of orders-0"):
        kafka.delete_records({FIRST: -2})


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1, "OFFSET_OUT_OF_RANGE (1): the partition ends before that offset"),
        (44, "POLICY_VIOLATION (44): its cleanup.policy is compact alone"),
    ],
)
def test_why_records_are_not_cut_off_is_told_though_brokers_send_no_text(
    brokers, kafka, code, text
):
    part = DeleteRecordsResponse.Topic
    refused = part(name="orders", partitions=(part.Partition(error_code=code),))
    brokers.on("DeleteRecords", DeleteRecordsResponse(topics=(refused,)))
    with pytest.raises(BrokerError, match=re.escape(text)):
        kafka.delete_records({FIRST: 7})


def described(*resources, code=0):
    part = DescribeConfigsResponse.Resource
    entries = (
        part.Config(name="retention.ms", value="5", config_source=1),
        part.Config(name="password", value=None, config_source=4, is_sensitive=True),
    )
    return DescribeConfigsResponse(
        results=tuple(
            part(
                resource_type={"topic": 2, "broker": 4}[kind],
                resource_name=name,
                configs=entries,
                error_code=code,
            )
            for kind, name in resources
        )
    )


def test_broker_is_asked_about_itself_and_the_controller_about_the_rest(brokers, kafka):
    brokers.on("DescribeConfigs", described(TOPIC), node=1)
    brokers.on("DescribeConfigs", described(BROKER), node=2)
    found = kafka.describe_configs({TOPIC, BROKER})
    entry = found[TOPIC]["retention.ms"]
    assert (entry.value, entry.source, entry.is_default) == ("5", "topic", False)
    assert found[BROKER]["password"].is_sensitive


def test_changes_name_what_changes(brokers, kafka):
    part = IncrementalAlterConfigsResponse.Resource
    well = part(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    changes = [
        ConfigChange("a", "1"),
        ConfigChange("b", None, Change.DELETE),
        ConfigChange("c", "x", Change.APPEND),
        ConfigChange("d", "y", Change.SUBTRACT),
    ]
    kafka.alter_configs({TOPIC: changes})
    (request,) = brokers.asked("IncrementalAlterConfigs")
    (resource,) = request.resources
    assert [(item.name, item.config_operation, item.value) for item in resource.configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
        ("c", 2, "x"),
        ("d", 3, "y"),
    ]


def test_refused_value_says_what_the_broker_says(brokers, kafka, clock):
    part = IncrementalAlterConfigsResponse.Resource
    refused = part(
        resource_type=2, resource_name="orders", error_code=40, error_message="not a number"
    )
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(refused,)))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*INVALID_CONFIG.*not a number"):
        kafka.alter_configs({TOPIC: [ConfigChange("retention.ms", "x")]})


def test_values_never_show_in_a_change():
    assert "hunter2" not in repr(ConfigChange("listener.password", "hunter2"))
    with pytest.raises(ConfigError) as caught:
        ConfigChange("listener.password", "hunter2", Change.DELETE)
    assert "hunter2" not in str(caught.value)


def test_broker_that_is_away_keeps_no_other_from_an_answer(brokers, kafka, clock):
    away = ConfigResource("broker", "7")
    brokers.on("DescribeConfigs", described(TOPIC))
    with pytest.raises(BrokerError, match=r"broker 7.*the cluster has the brokers 1, 2") as caught:
        kafka.describe_configs({away, TOPIC})
    assert caught.value.usable.keys() == {TOPIC}
    assert clock.now - 1000 <= 2


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        (ConfigResource("tpoic", "x"), "expected one of topic"),
        (ConfigResource("broker", "b1"), "a broker's id"),
        (ConfigResource("broker", 1), "expected a name, as text"),
    ],
)
def test_resources_that_there_are_not_are_refused(kafka, resource, told):
    with pytest.raises(ConfigError, match=told):
        kafka.describe_configs({resource})
