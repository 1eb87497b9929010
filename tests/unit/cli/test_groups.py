"""`kafkaproto groups` and `lag` over groups of every type."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.messages.delete_groups import DeleteGroupsResponse
from pyspark_kafkaproto.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import (
    assigned,
    classic,
    consumer,
    describing,
    share,
    streams,
    subtopology,
)
from tests.unit.cluster.sharing import FakeShareCoordinator

FIRST, SECOND = ("orders", 0), ("orders", 1)


@pytest.mark.slow
def test_list_says_what_speaks_which_protocol_and_what_uses_it(brokers, command, rows):
    part = ListGroupsResponse.Group
    groups = (
        ("a", "Classic", "consumer"),
        ("b", "Classic", "connect"),
        ("c", "Classic", ""),
        ("d", "Consumer", "consumer"),
        ("e", "Share", "share"),
        ("f", "Streams", "streams"),
    )
    brokers.on(
        "ListGroups",
        ListGroupsResponse(
            groups=tuple(
                part(group_id=name, group_type=kind, protocol_type=used, group_state="Empty")
                for name, kind, used in groups
            )
        ),
    )
    assert command("groups", "list").stdout.splitlines() == [
        "Group  Type      State  Used by",
        "a      classic   Empty  consumers",
        "b      classic   Empty  connect",
        "c      classic   Empty  -",
        "d      consumer  Empty  consumers",
        "e      share     Empty  share consumers",
        "f      streams   Empty  streams applications",
    ]
    assert [row["protocol_type"] for row in rows("groups", "list")] == [
        used for _, _, used in groups
    ]
    assert "users" not in rows("groups", "list")[0]


@pytest.mark.slow
def test_describe_shows_groups_of_every_type(brokers, command, rows):
    describing(
        brokers,
        classic("c", assigned(0)),
        consumer("n", assignments=[((0,), (0,))], member_type=0),
        share("s", (0, 1), (0,)),
        streams(
            "t",
            subtopology("0", "orders", sinks=("r",)),
            subtopology("10", repartition=(("r", 2),), changelogs=(("r", 2),)),
            members=[{"active": {"10": (0,), "0": (0, 1)}, "standby": {"10": (1,)}}],
            state="NotReady",
        ),
    )
    shown = command("groups", "describe", "c", "n", "s", "t")
    assert shown.stdout.splitlines() == [
        "Group  Type      State     Assignor  Epoch  Members",
        "c      classic   Stable    range         -        1",
        "n      consumer  Stable    uniform       7        1",
        "s      share     Stable    simple        4        2",
        "t      streams   NotReady  -             5        1",
        "",
        "Group  Client  Host  Instance  Member  Protocol  Partitions",
        "c      c0      /h    -         m0      classic   orders-0",
        "n      c0      /h    -         m0      classic   orders-0",
        "s      c0      /h    -         m0      share     orders-0, orders-1",
        "s      c1      /h    -         m1      share     orders-0",
        "",
        "Group  Client  Host  Instance  Member  Active tasks    Standby  Warm-up",
        "t      c0      /h    -         m0      0_0, 0_1, 10_0  10_1     -",
        "",
        "Group  Subtopology  Sources  From others  For others  Changelogs",
        "t      0            orders   -            r           -",
        "t      10           -        r            -           r",
        "",
        "Group  Problem",
        "t      repartition topic 'r' is not there",
        "t      changelog topic 'r' is not there",
    ]
    *_, group = rows("groups", "describe", "t")
    assert group["topology"]["problems"] == [
        "repartition topic 'r' is not there",
        "changelog topic 'r' is not there",
    ]
    assert [part["subtopology"] for part in group["topology"]["subtopologies"]] == ["0", "10"]
    assert group["members"][0]["tasks"]["standby"] == ["10_1"]
    assert group["members"][0]["assignment"] == ["orders-0", "orders-1"]


def test_describe_says_of_each_group_that_nobody_is_there(brokers, command):
    describing(brokers, share("s"), streams("t", subtopology("0", "orders"), state="Empty"))
    assert command("groups", "describe", "s").stdout.splitlines()[1:] == [
        "s      share  Empty  simple        4        0",
        "",
        "no members",
    ]
    assert "no members\n\nGroup  Subtopology" in command("groups", "describe", "t").stdout


@pytest.fixture
def coordinator(brokers):
    """A share group that starts at 20 of 30 records, and has not begun in the other partition."""
    return FakeShareCoordinator(brokers, s={FIRST: (20, 4), SECOND: (-1, -1)})


def test_offsets_and_lag_of_a_share_group(coordinator, command, rows):
    assert command("groups", "offsets", "s").stdout.splitlines() == [
        "Group  Topic   Partition  Offset  Metadata",
        "s      orders          0      20  -",
    ]
    assert [(row["offset"], row["lag"]) for row in rows("lag", "s")] == [(20, 4), (None, None)]


@pytest.mark.slow
def test_reset_of_a_share_group_moves_where_it_starts(coordinator, brokers, command, rows):
    words = ("groups", "reset", "s", "--to-earliest")
    assert rows(*words, "--dry-run") == [
        {"topic": "orders", "partition": 0, "before": 20, "after": 0},
        {"topic": "orders", "partition": 1, "before": None, "after": 0},
    ]
    assert command(*words, input="n\n").exit_code == 1
    assert coordinator.starts["s"][FIRST] == (20, 4)
    assert command(*words, "--yes").exit_code == 0
    assert coordinator.starts["s"] == {FIRST: (0, 0), SECOND: (0, 0)}
    assert brokers.asked("OffsetCommit") == []
    describing(brokers, share("s", (0,)))
    refused = command(*words, "--yes")
    assert (refused.exit_code, "NON_EMPTY_GROUP" in refused.stderr) == (1, True)


def test_a_share_group_without_offsets_asks_for_topics_by_their_option(brokers, command):
    FakeShareCoordinator(brokers, s={})
    done = command("groups", "reset", "s", "--to-earliest", "--yes")
    assert done.exit_code == 2
    assert "group s has no offsets: name what to reset, --topic TOPIC" in done.stderr


@pytest.mark.slow
def test_delete_forgets_whole_topics_of_a_share_group(coordinator, brokers, command, rows):
    refused = command("groups", "delete", "s", "--topic", "orders:0", "--yes")
    assert refused.exit_code == 2
    assert "s: a share group forgets whole topics, not orders:0" in refused.stderr
    done = rows("groups", "delete", "s", "--topic", "orders", "--yes")
    assert [(row["partition"], row["result"]) for row in done] == [(0, "deleted"), (1, "deleted")]
    assert coordinator.starts["s"] == {}
    assert brokers.asked("OffsetDelete") == []


def test_nothing_is_deleted_where_a_share_group_has_nothing_of_a_topic(
    coordinator, brokers, command
):
    words = ("groups", "delete", "s", "--topic", "orders", "--topic", "empty")
    refused = command(*words, "--yes", "--json")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "group s, topic empty: there is no offset information to delete" in refused.stderr
    assert "(kafkaproto groups offsets shows what there is)" in refused.stderr
    assert brokers.asked("DeleteShareGroupOffsets") == []


def test_topics_that_a_share_group_has_forgotten_are_told_where_another_is_refused(
    coordinator, brokers, command
):
    coordinator.starts["s"]["empty", 0] = (0, 0)
    part = DeleteShareGroupOffsetsResponse.Topic
    both = (part(topic_name="empty"), part(topic_name="orders", error_code=29))
    brokers.on("DeleteShareGroupOffsets", DeleteShareGroupOffsetsResponse(responses=both))
    topics = ("--topic", "orders", "--topic", "empty")
    refused = command("groups", "delete", "s", *topics, "--yes", "--json")
    assert refused.exit_code == 5
    assert refused.stdout == (
        '[{"group": "s", "topic": "empty", "partition": 0, "result": "deleted"}]\n'
    )
    assert "deleted offsets of s for empty-0" in refused.stderr


@pytest.mark.parametrize("group", [share("g"), streams("g", subtopology("0", "orders"))])
def test_groups_of_every_type_are_deleted(brokers, command, group):
    FakeCoordinator(brokers)
    describing(brokers, group)
    part = DeleteGroupsResponse.Group
    brokers.on("DeleteGroups", DeleteGroupsResponse(results=(part(group_id="g"),)))
    assert command("groups", "delete", "g", "--yes").exit_code == 0
    assert len(brokers.asked("DeleteGroups")) == 1


def test_a_streams_group_is_reset_as_one_that_commits(brokers, command):
    coordinator = FakeCoordinator(brokers, t={FIRST: (20, "")})
    describing(brokers, streams("t", subtopology("0", "orders")))
    assert command("groups", "reset", "t", "--to-earliest", "--yes").exit_code == 0
    assert coordinator.offsets["t"] == {FIRST: (0, "")}
