"""Members of real groups: ours with those of other clients; a static one that comes back."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.rivals import java_member
from tests.broker.sharing import (
    PARTITIONS,
    RECORDS,
    check_three_clients,
    is_shared,
    make_topic,
    open_member,
    poll_all,
)

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(kafka, new_name):
    return make_topic(kafka, new_name())


@pytest.fixture
def member(broker):
    """Makes our member of a group; properties as keywords with `_`."""

    def make(group, topic, listeners=None, **properties):
        given = {"heartbeat_interval_ms": 200, "session_timeout_ms": 6000} | properties
        return open_member(broker, group, topic, listeners, **given)

    return make


def test_one_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    group = new_name("group")

    def ours():
        return member(group, topic)

    described = check_three_clients(broker, kafka, topic, group, ours, tmp_path)
    assert (described.state, described.assignor) == ("Stable", "range")


def test_a_cooperative_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    """Whoever leads it: what stays with a member is read on."""
    group, how, revoked = new_name("group"), "cooperative-sticky", []

    def ours():
        listeners = {"on_revoke": revoked.append}
        return member(group, topic, listeners, partition_assignment_strategy=how)

    described = check_three_clients(broker, kafka, topic, group, ours, tmp_path, "classic", how)
    assert (described.state, described.assignor) == ("Stable", how)
    given_up = sum(map(len, revoked))
    assert given_up == 4 + 2 + PARTITIONS, "to others, and closed twice"


def test_sticky_members_keep_what_they_had_whoever_leads(
    broker, kafka, topic, new_name, member, tmp_path
):
    """Java's member reads what ours says that it had, and the reverse: they take turns to lead."""
    group, how = new_name("group"), "sticky"
    make = lambda: member(group, topic, partition_assignment_strategy=how)  # noqa: E731
    ours, second = make(), make()
    poll_all((ours, second), is_shared(ours, second), "two members")
    with java_member(broker, group, topic, tmp_path, "classic", how) as java:
        poll_all((ours, second), is_shared(ours, second, java), "three members")
        assert kafka.describe_groups({group})[group].assignor == how
        had, javas = second.assignment, java.assignment
        ours.close()
        poll_all([second], is_shared(second, java), "who is left")
        assert had < second.assignment
        assert javas < java.assignment
        second.close()


def test_a_static_member_finds_its_partitions_again_and_fences_its_double(
    kafka, topic, new_name, member
):
    group = new_name("group")
    first = member(group, topic, group_instance_id="till-1")
    second = member(group, topic, group_instance_id="till-2")
    poll_all((first, second), is_shared(first, second), "two members")
    before, epoch = first.assignment, generation(second)
    first.close()
    again = member(group, topic, group_instance_id="till-1")
    poll_all((again, second), is_shared(again, second), "its coming back")
    assert again.assignment == before
    assert generation(second) == epoch  # nobody else was disturbed
    double = member(group, topic, group_instance_id="till-1")
    with pytest.raises(BrokerError, match=r"FENCED_INSTANCE_ID.*taken over"):
        poll_all((again, double, second), lambda: False, "the double")
    for one in (again, double, second):
        one.close()


def test_who_closes_while_the_group_waits_for_others_is_not_kept(kafka, topic, new_name, member):
    """The broker holds our JoinGroup until all have come: leaving ends that, too."""
    group = new_name("group")
    idle = member(group, topic, max_poll_interval_ms=60_000)
    poll_all([idle], is_shared(idle), "an assignment")
    late = member(group, topic)
    deadline = Deadline.after(20)
    while len(kafka.describe_groups({group})[group].members) < 2 or not late.member_id:
        deadline.check("the second member")
        late.poll(0.05)
    began = time.monotonic()
    late.close()
    assert time.monotonic() - began < 4
    assert not late._keeper._thread.is_alive()
    idle.poll(0)
    idle.close()
    assert kafka.describe_groups({group})[group].state == "Empty"


def test_a_generation_that_ends_early_hands_rows_on(kafka, topic, new_name, member):
    """max.poll.interval.ms: the other member reads what this one did not commit."""
    group, only = new_name("group"), TopicPartition(topic, 0)
    fill(kafka, {only: RECORDS})
    slow = member(group, topic, max_poll_interval_ms=1000, enable_auto_commit="false")
    poll_all([slow], lambda: slow.positions.get(only) == RECORDS, "all rows")
    slow.commit({only: 40})
    quick = member(group, topic)
    rows = poll_all([quick], lambda: quick.positions.get(only) == RECORDS, "the others' rows")
    assert rows == RECORDS - 40
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        slow.commit({only: RECORDS})
    quick.close()
    slow.close()


def generation(consumer):
    return consumer._membership.member.generation
