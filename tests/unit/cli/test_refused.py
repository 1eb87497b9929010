"""Commands that show several things: what is refused keeps nothing else from being shown."""

from __future__ import annotations

import json
from functools import partial

import pytest

from pyspark_kafkaproto.cli.refused import Refused, all_of
from pyspark_kafkaproto.cluster import topology
from pyspark_kafkaproto.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
)
from pyspark_kafkaproto.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchResponse
from pyspark_kafkaproto.net import deadline, retry
from tests.clock import stop_clock
from tests.unit.cluster.admin import test_log_dirs
from tests.unit.cluster.admin.fake_settings import DESCRIBE, refuse_topic
from tests.unit.cluster.admin.test_reassignments import LIST, under_way
from tests.unit.cluster.admin.test_users import described
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import assigned, classic, describing, listed

pytestmark = pytest.mark.usefixtures("known_at_once", "opinions_at_once")


@pytest.fixture
def there(brokers, settings):
    """The group `reports`, which has committed, and has a member; topics; users; moves."""
    FakeCoordinator(brokers, reports={("orders", 0): (20, "")})
    describing(brokers, classic("reports", assigned(0)))
    settings["topic", "orders"] = {"leader.replication.throttled.replicas": "*"}
    folder = test_log_dirs.folder("/a", 7, total_bytes=100, usable_bytes=40)
    brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder,)))
    brokers.on(LIST, under_way(0))
    every = {"reports": {"SCRAM-SHA-512": 4096}, "ghost": 91, "spook": 91}
    brokers.on("DescribeUserScramCredentials", partial(users_of, every))


def users_of(every, call):
    told = described(**{item.name: every[item.name] for item in call.request.users or ()})
    return DescribeUserScramCredentialsResponse(results=told.results)


def found_in(printed):
    """All strings and numbers of JSON."""
    match printed:
        case dict():
            return set().union(*map(found_in, printed.values()))
        case list():
            return set().union(*map(found_in, printed))
    return {printed}


@pytest.mark.parametrize(
    ("words", "ours", "missing"),
    [
        (("groups", "describe"), "reports", ("ghost", "spook")),
        (("groups", "offsets"), "reports", ("ghost", "spook")),
        (("lag",), "reports", ("ghost", "spook")),
        (("lag", "--topic", "orders"), "reports", ("ghost", "spook")),
        (("topics", "describe"), "orders", ("ghost", "spook")),
        (("metadata",), "orders", ("ghost", "spook")),
        (("offsets",), "orders", ("ghost", "spook")),
        (("offsets", "--at", "latest"), "orders", ("ghost", "spook")),
        (("users", "list"), "reports", ("ghost", "spook")),
        (("reassignments", "list"), "orders", ("ghost", "spook")),
        (("brokers", "log-dirs"), "2", ("7", "8")),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
@pytest.mark.usefixtures("there")
def test_what_is_there_is_shown_and_each_that_is_not_is_named(command, words, ours, missing):
    alone = command(*words, ours)
    assert alone.exit_code == 0, alone.output
    done = command(*words, missing[0], ours, missing[1])
    assert done.exit_code == 1
    assert done.stdout == alone.stdout
    lines = [line for line in done.stderr.splitlines() if "its last packets" not in line]
    for name in missing:
        assert len([line for line in lines if name in line]) == 1, done.stderr
    shown = command(*words, missing[0], ours, missing[1], "--json")
    assert shown.exit_code == 1
    assert json.loads(shown.stdout) == json.loads(command(*words, ours, "--json").stdout)
    assert found_in(json.loads(shown.stdout)) & {ours, int(ours) if ours.isdecimal() else ours}


@pytest.mark.parametrize("words", ["topics describe", "metadata", "offsets", "reassignments list"])
@pytest.mark.usefixtures("there")
def test_news_of_all_topics_that_nobody_knows_is_waited_for_once(command, monkeypatch, words):
    """Each was waited for by itself: a list of fifty old names took most of a minute."""
    clock = stop_clock(monkeypatch, retry, deadline)
    monkeypatch.setattr(topology, "_NEWS_TRAVELS_S", 1.0)
    done = command(*words.split(), "orders", *(f"ghost{at}" for at in range(5)))
    assert done.exit_code == 1
    assert done.stderr.count("UNKNOWN_TOPIC_OR_PARTITION") == 5
    assert sum(clock.slept) < 1.5


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "delete", "-y"),
        ("groups", "delete", "-y"),
        ("groups", "delete", "-y", "--topic", "orders"),
        ("groups", "delete", "-y", "reports", "--topic"),
        ("groups", "reset", "-y", "reports", "--to-earliest", "--topic"),
        ("lag", "--topic"),
        ("leaders", "elect"),
        ("reassignments", "propose"),
        ("reassignments", "begin", "-"),
        ("reassignments", "cancel", "-y"),
        ("reassignments", "unthrottle"),
        ("transactions", "producers"),
        ("transactions", "find-hanging"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("there")
def test_each_that_is_not_there_is_named_before_anything_is_done(brokers, command, words):
    """Who wrote two names wrong learnt of one, and of the other by the next try."""
    wrong, moves = ["spook", "ghost"], []
    if words[-1] == "-":
        moves = [{"topic": name, "partition": 0, "replicas": [1]} for name in wrong]
        given = []
    elif words[-1] == "--topic":
        given = [wrong[0], "--topic", wrong[1]]
    else:
        given = wrong
    told = json.dumps({"version": 1, "partitions": moves})
    done = command(*words, *given, input=told)
    assert (done.exit_code, done.stdout) == (1, "")
    for name in wrong:
        assert len([line for line in done.stderr.splitlines() if f"'{name}'" in line]) == 1
    for change in ("DeleteTopics", "DeleteGroups", "OffsetDelete", "ElectLeaders"):
        assert brokers.asked(change) == []


def test_one_question_about_all_that_are_to_be_changed(brokers, command):
    done = command("topics", "delete", "orders", "empty", input="n\n")
    assert (done.exit_code, len(brokers.asked("Metadata"))) == (1, 1)


def test_what_is_there_by_the_time_it_is_asked_about_alone_is_not_refused():
    answers = iter(["no", "a", "b", "both"])

    def ask(names):
        answer = next(answers)
        if answer == "no":
            raise BrokerError(TOPIC_AUTHORIZATION_FAILED, "Metadata", "topic 'a'")
        return answer

    assert all_of(["a", "b"], ask) == "both"


@pytest.mark.parametrize("name", ["describe", "offsets"])
@pytest.mark.usefixtures("there")
def test_where_nothing_is_there_nothing_is_printed(command, name):
    done = command("groups", name, "ghost", "spook")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("GROUP_ID_NOT_FOUND") == 2


@pytest.mark.parametrize("names", [(), ("orders", "empty")])
@pytest.mark.usefixtures("there")
def test_topics_whose_settings_may_not_be_read_are_described_all_the_same(brokers, command, names):
    refuse_topic(brokers, DESCRIBE, "empty")
    done = command("topics", "describe", *names, "--json")
    assert done.exit_code == 5
    told = json.loads(done.stdout)
    assert {row["topic"] for row in told["partitions"]} == {"orders", "empty"}
    assert {row["topic"] for row in told["configs"]} == {"orders"}
    assert "topic 'empty'" in done.stderr


@pytest.mark.usefixtures("there")
def test_what_is_refused_for_all_is_said_once(command):
    """Each group is asked about by itself, and none has this topic."""
    done = command("lag", "reports", "reports", "--topic", "ghost")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("topic 'ghost'") == 1


@pytest.mark.parametrize("watched", [(), ("--json",)], ids=["table", "json"])
def test_groups_that_are_listed_and_may_not_be_looked_into_hide_no_others(
    brokers, command, watched
):
    """Who may describe the cluster is told the names of all groups."""
    own = FakeCoordinator(brokers, a={("orders", 0): (20, "")}, b={("orders", 1): (5, "")})
    alone = command("lag", "a", *watched)
    brokers.on("ListGroups", listed(("a", "Classic", "Empty"), ("b", "Classic", "Empty")))
    brokers.on("OffsetFetch", lambda call: refusing(own.fetch(call), "b"))
    done = command("lag", *watched)
    assert (done.exit_code, done.stdout) == (5, alone.stdout)
    assert "group 'b'" in done.stderr
    assert "group 'a'" not in done.stderr
    missing = command("lag", "--topic", "ghost")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "topic 'ghost'" in missing.stderr


def test_share_groups_that_are_switched_off_hide_no_others(brokers, command):
    """They are listed after `features downgrade share.version=0`, too."""
    FakeCoordinator(brokers, a={("orders", 0): (20, "")})
    alone = command("lag", "a")
    assert alone.exit_code == 0, alone.output
    brokers.on("ListGroups", listed(("a", "Classic", "Empty"), ("s", "Share", "Empty")))
    part = DescribeShareGroupOffsetsResponse.Group
    off = part(group_id="s", topics=(), error_code=UNSUPPORTED_VERSION)
    brokers.on("DescribeShareGroupOffsets", DescribeShareGroupOffsetsResponse(groups=(off,)))
    done = command("lag")
    assert (done.exit_code, done.stdout) == (1, alone.stdout)
    assert "group 's'" in done.stderr
    assert "switched off" in done.stderr


def refusing(answer, group):
    """`answer` to an OffsetFetch, but that one group is refused."""
    part = OffsetFetchResponse.Group
    no = part(group_id=group, topics=(), error_code=GROUP_AUTHORIZATION_FAILED)
    kept = tuple(no if item.group_id == group else item for item in answer.groups)
    return OffsetFetchResponse(groups=kept)


def test_one_question_where_nothing_is_refused():
    asked = []
    refused = Refused()
    assert refused.each(["a", "b", "a"], lambda names: asked.append(names) or "well") == ["well"]
    assert asked == [{"a", "b"}]
    refused.tell()


def test_other_errors_are_about_all_and_not_tried_again():
    asked = []

    def ask(names):
        asked.append(names)
        raise ConnectionFailed("b:1", "connect", "refused")

    with pytest.raises(ConnectionFailed):
        Refused().each(["a", "b"], ask)
    assert len(asked) == 1


def test_what_was_waited_for_is_not_waited_for_again_with_each():
    """A coordinator that is away takes all of default.api.timeout.ms, once."""
    asked = []

    def ask(names):
        asked.append(names)
        raise BrokerError(COORDINATOR_NOT_AVAILABLE, "FindCoordinator", "group 'a'")

    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        Refused().each(["a", "b"], ask)
    assert len(asked) == 1


def test_the_same_refusal_is_told_once_and_in_their_order():
    refused = Refused()

    def ask(names):
        why = "z" if names & {"a", "c"} else "y"
        raise BrokerError(TOPIC_AUTHORIZATION_FAILED, "Metadata", f"topic {why!r}")

    assert refused.each("abc", ask) == []
    with pytest.raises(BrokerError) as caught:
        refused.tell()
    assert [line[:19] for line in str(caught.value).splitlines()] == [
        "Metadata: topic 'z'",
        "Metadata: topic 'y'",
    ]
