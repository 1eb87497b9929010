"""Groups themselves: listed on all brokers, described in both protocols, deleted."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.members import read_assignment
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.delete_groups import DeleteGroupsResponse
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from tests.fake_broker import api_versions, close
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import (
    assigned,
    classic,
    consumer,
    describing,
    listed,
    share,
    streams,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_groups_of_all_brokers_are_listed(brokers, kafka):
    brokers.on("ListGroups", listed(("b", "Classic", "Empty")), node=1)
    brokers.on("ListGroups", listed(("a", "Consumer", "Stable")), node=2)
    found = kafka.list_groups(states=["Empty", "Stable"], types=["classic"])
    assert [(item.group, item.type, item.state) for item in found] == [
        ("a", "consumer", "Stable"),
        ("b", "classic", "Empty"),
    ]
    (request,) = brokers.asked("ListGroups", node=2)
    assert (request.states_filter, request.types_filter) == (("Empty", "Stable"), ("classic",))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"states": ["Empyt"]}, "option 'state' is 'Empyt': expected one of Empty, Stable"),
        ({"types": ["classical"]}, "option 'type' is 'classical': expected one of classic"),
        ({"states": "Empty"}, "expected a set of states"),
    ],
)
def test_states_and_types_that_there_are_not_are_refused(kafka, asked, told):
    with pytest.raises(ConfigError, match=told):
        kafka.list_groups(**asked)


def test_brokers_do_not_mind_capitals_and_neither_do_we(brokers, kafka):
    brokers.on("ListGroups", listed())
    assert kafka.list_groups(states=["empty"], types=["Consumer"]) == []


def test_broker_that_is_still_loading_its_groups_is_waited_for(brokers, kafka, clock):
    brokers.on("ListGroups", listed(code=14), listed(("a", "", "")), node=1)
    brokers.on("ListGroups", listed(), node=2)
    assert [item.group for item in kafka.list_groups()] == ["a"]
    assert len(clock.slept) == 1


def test_classic_and_consumer_groups_look_alike(brokers, kafka):
    new = consumer("new", assignments=[((0,), (0, 1)), ((1,), ())])
    describing(brokers, classic("old", assigned(0), assigned(1), b""), new)
    found = kafka.describe_groups({"old", "new"})
    assert [
        (item.type, item.state, item.assignor, item.epoch) for item in (found["old"], found["new"])
    ] == [("classic", "Stable", "range", None), ("consumer", "Stable", "uniform", 7)]
    assert [member.assignment for member in found["old"].members] == [{FIRST}, {SECOND}, set()]
    assert found["new"].owners[SECOND].member_id == "m1"
    assert found["new"].members[0].target == {FIRST, SECOND}
    assert [item.assignment_epoch for item in (found["old"], found["new"])] == [None, 6]
    assert brokers.asked("DescribeGroups")[0].groups == ("old",)


@pytest.mark.parametrize("missing", [classic("g", code=69), classic("g", state="Dead")])
def test_group_that_there_is_not_is_an_error_beside_those_there_are(brokers, kafka, missing):
    describing(brokers, classic("there"))
    brokers.on("DescribeGroups", DescribeGroupsResponse(groups=(missing, classic("there"))))
    with pytest.raises(
        BrokerError, match=r"group 'g': GROUP_ID_NOT_FOUND.*no such group"
    ) as caught:
        kafka.describe_groups({"g", "there"})
    assert caught.value.usable.keys() == {"there"}


@pytest.mark.parametrize(
    ("kind", "make", "feature"),
    [("share", share, "share"), ("streams", streams, "streams"), ("consumer", consumer, "group")],
)
@pytest.mark.parametrize(
    "ask", [lambda kafka: kafka.describe_groups({"g"}), lambda kafka: kafka.lag({"g"})]
)
def test_group_of_a_type_that_is_switched_off_is_not_said_not_to_be_there(
    brokers, kafka, kind, make, feature, ask
):
    FakeCoordinator(brokers)
    describing(brokers, make("g", code=35))
    brokers.on("ListGroups", listed(("g", kind.title(), "Empty")))
    told = rf"UNSUPPORTED_VERSION.*{kind} group.*kafkaproto features upgrade {feature}\.version=1"
    with pytest.raises(BrokerError, match=told) as caught:
        ask(kafka)
    # Brokers switch the types off, too, but that of share groups.
    said = f"or group.coordinator.rebalance.protocols of its brokers is without {kind}"
    assert (said in str(caught.value)) == (kind != "share")


def test_where_groups_may_not_be_listed_a_missing_one_is_just_missing(brokers, kafka):
    describing(brokers)
    brokers.on("ListGroups", listed(code=31))
    with pytest.raises(BrokerError, match="no such group"):
        kafka.describe_groups({"g"})


@pytest.mark.parametrize(("told", "is_classic"), [(-1, None), (0, True), (1, False)])
def test_members_of_a_consumer_group_may_speak_the_classic_protocol(
    brokers, kafka, told, is_classic
):
    mixed = consumer("g", assignments=[((0,), (0,))], member_type=told)
    describing(brokers, mixed, classic("old", assigned(0)))
    found = kafka.describe_groups({"g", "old"})
    assert [found[name].members[0].is_classic for name in ("g", "old")] == [is_classic, True]


def test_broker_without_consumer_groups_is_asked_for_classic_ones(brokers, kafka):
    describing(brokers, classic("old", assigned(0)))
    for api in ("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"):
        del brokers.versions[api]
    assert kafka.describe_groups({"old"})["old"].owners.keys() == {FIRST}
    with pytest.raises(BrokerError, match="no such group"):
        kafka.describe_groups({"nope"})


def test_brokers_without_consumer_groups_hide_none_of_others(brokers, kafka):
    """While a cluster is upgraded: what one broker does not know another has told."""
    brokers.coordinators["old"] = 2
    describing(brokers, consumer("new", assignments=[((0,), (0,))]), classic("old", assigned(0)))
    known = (item for item in api_versions(brokers, None).api_keys if item.api_key != 69)
    brokers.on("ApiVersions", ApiVersionsResponse(api_keys=tuple(known)), node=2)
    found = kafka.describe_groups({"old", "new"})
    assert {name: item.type for name, item in found.items()} == {
        "old": "classic",
        "new": "consumer",
    }


def test_members_of_other_protocols_keep_their_bytes_to_themselves(brokers, kafka):
    describing(brokers, classic("connect", b"\x00\x01what?", protocol_type="connect"))
    assert kafka.describe_groups({"connect"})["connect"].members[0].assignment == set()


@pytest.mark.parametrize("version", [0, 3, 9])
def test_assignment_of_any_version_is_read(version):
    assert read_assignment(assigned(0, 1, version=version) + b"later", "x") == {FIRST, SECOND}


@pytest.mark.parametrize(
    "data", [b"\x00", b"\xff\xff", assigned(0)[:9], b"\x00\x01\x7f\xff\xff\xff"]
)
def test_damaged_assignment_names_the_member(brokers, kafka, data):
    describing(brokers, classic("g", data))
    with pytest.raises(RemoteProtocolError, match=r"group 'g', assignment of member 'm0'"):
        kafka.describe_groups({"g"})


def deleted(**codes):
    part = DeleteGroupsResponse.Group
    return DeleteGroupsResponse(
        results=tuple(part(group_id=name, error_code=code) for name, code in codes.items())
    )


def test_groups_are_deleted_where_they_are_coordinated(brokers, kafka):
    brokers.coordinators["b"] = 2
    brokers.on("DeleteGroups", deleted(a=0), node=1)
    brokers.on("DeleteGroups", deleted(b=0), node=2)
    kafka.delete_groups({"a", "b"})
    assert brokers.asked("DeleteGroups", node=2)[0].groups_names == ("b",)


def test_group_with_members_is_not_deleted_and_the_others_are(brokers, kafka, clock):
    brokers.on("DeleteGroups", deleted(a=0, b=68))
    with pytest.raises(
        BrokerError, match=r"group 'b'.*NON_EMPTY_GROUP.*stop them.*killed"
    ) as caught:
        kafka.delete_groups({"a", "b"})
    assert caught.value.usable.keys() == {"a"}


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_group_that_is_not_there_is_told_perhaps_of_an_earlier_try(
    brokers, kafka, clock, is_lost
):
    brokers.on("DeleteGroups", *([close()] if is_lost else []), deleted(a=69))
    with pytest.raises(BrokerError, match=r"group 'a'.*there is no such group") as caught:
        kafka.delete_groups({"a"})
    assert ("an earlier try may have done it" in str(caught.value)) == is_lost


def test_one_name_is_not_a_set_of_names(kafka):
    for call in (kafka.describe_groups, kafka.delete_groups, kafka.lag, kafka.get_group_offsets):
        with pytest.raises(ConfigError, match="expected a set of names"):
            call("reports")
        with pytest.raises(ConfigError, match="'group' is 3: expected the name of a group"):
            call({3})


@pytest.mark.slow
def test_groups_that_may_be_seen_are_described_beside_one_that_may_not(brokers, kafka):
    others = classic("old"), share("sharing"), streams("streaming")
    describing(brokers, consumer("hidden", code=30), consumer("new"), *others)
    with pytest.raises(BrokerError, match=r"'hidden' at .*GROUP_AUTHORIZATION_FAILED") as caught:
        kafka.describe_groups({"hidden", "old", "new", "sharing", "streaming", "gone"})
    assert {group: item.type for group, item in caught.value.usable.items()} == {
        "old": "classic",
        "new": "consumer",
        "sharing": "share",
        "streaming": "streams",
    }
    assert brokers.asked("DescribeGroups")[0].groups == ("gone", "old", "sharing", "streaming")


@pytest.mark.slow
def test_groups_that_are_not_told_of_are_not_among_those_described(brokers, kafka, clock):
    describing(brokers, consumer("new"), classic("old"))
    brokers.on("DescribeGroups", close())
    with pytest.raises(KafkaProtoError) as caught:
        kafka.describe_groups({"old", "new"})
    assert caught.value.usable.keys() == {"new"}
