"""`kafkaproto reassignments` over fake brokers: files, tables, waits, throttles, refusals."""

from __future__ import annotations

import json
from itertools import count

import pytest

from pyspark_kafkaproto.cli import moving
from pyspark_kafkaproto.cli.assignment_file import assignment_text
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, routing
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.clock import stop_clock
from tests.fake_broker import DEFAULT, close
from tests.unit.cluster.admin import test_log_dirs
from tests.unit.cluster.admin.test_brokers import registered
from tests.unit.cluster.admin.test_reassignments import ALTER, LIST, altered, under_way

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
# The fake topics have the replicas 1, 2 everywhere.
SWAPPED = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]}
AS_IT_IS = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its name."""

    def write(found):
        path = tmp_path / "moves.json"
        path.write_text(found if isinstance(found, str) else json.dumps(found))
        return str(path)

    return write


@pytest.mark.slow
def test_proposal_is_a_file_on_standard_output(brokers, command):
    brokers.on(LIST, under_way())
    done = command("reassignments", "propose", "orders")
    assert json.loads(done.stdout) == SWAPPED
    assert done.stderr == (
        "1 of 2 partitions would change: 0 replicas to copy, 1 preferred leader to change\n"
    )
    everywhere = command("reassignments", "propose", "--all", "--brokers", "1,2")
    assert everywhere.exit_code == 0
    assert command("reassignments", "propose").exit_code == 2
    assert command("reassignments", "propose", "orders", "--all").exit_code == 2
    assert command("reassignments", "propose", "orders", "--brokers", "1,x").exit_code == 2
    both = ("--brokers", "1", "--without", "2")
    assert command("reassignments", "propose", "orders", *both).exit_code == 2
    one = command("reassignments", "propose", "orders", "--without", "2")
    assert (one.exit_code, "has 2 replicas" in one.stderr) == (2, True)
    none = command("reassignments", "propose", "orders", "--without", "1,2")
    assert "no broker would be left" in none.stderr


def test_proposal_with_too_few_brokers_names_the_option_that_was_given(brokers, command):
    brokers.on(LIST, under_way())
    few = "orders-0 has 2 replicas: expected as many brokers, or more"
    done = command("reassignments", "propose", "orders", "--without", "2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"Error: option '--without' is '2': {few}, to be left\n"
    done = command("reassignments", "propose", "orders", "--brokers", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"Error: option '--brokers' is '1': {few}\n"


@pytest.mark.slow
def test_nothing_begins_unless_it_is_confirmed(brokers, command, file):
    brokers.on(LIST, under_way())
    done = command("reassignments", "begin", file(SWAPPED), input="n\n")
    assert done.exit_code == 1
    assert "orders          0  1, 2    2, 1" in done.stderr
    done = command("reassignments", "begin", file(SWAPPED), input="")
    assert (done.exit_code, "--yes is needed" in done.stderr) == (2, True)
    done = command("reassignments", "begin", file(SWAPPED), "--dry-run")
    assert (done.exit_code, "2, 1" in done.stdout) == (0, True)
    assert brokers.asked(ALTER) == []


@pytest.mark.slow
def test_what_is_there_already_is_not_begun(brokers, command, rows, file):
    brokers.on(LIST, under_way())
    done = command("reassignments", "begin", file(AS_IT_IS), "--yes")
    assert done.stderr == "all replicas are where they are to be\n"
    assert rows("reassignments", "begin", file(AS_IT_IS), "--yes") == []
    assert brokers.asked(ALTER) == []
    # What `propose` prints where all is well.
    done = command("reassignments", "begin", file({"version": 1, "partitions": []}))
    assert (done.exit_code, done.stderr) == (0, "all replicas are where they are to be\n")
    # Metadata shows what a move that goes elsewhere has copied so far.
    brokers.on(LIST, under_way(0))
    brokers.on(ALTER, altered(0))
    assert command("reassignments", "begin", file(AS_IT_IS), "--yes").exit_code == 0
    assert len(brokers.asked(ALTER)) == 1


@pytest.mark.slow
def test_what_is_begun_is_told_and_the_way_back_is_kept(brokers, rows, file, tmp_path):
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    back = tmp_path / "before.json"
    told = rows("reassignments", "begin", file(SWAPPED), "--yes", "--rollback", str(back))
    assert told == [
        {
            "topic": "orders",
            "partition": 0,
            "before": [1, 2],
            "after": [2, 1],
            "folders": [],
            "result": "begun",
        }
    ]
    assert json.loads(back.read_text()) == AS_IT_IS
    # What is only on its way is not where to go back to.
    brokers.on(LIST, under_way(0))
    brokers.topics["orders"].replicas = (3, 2, 1)
    other = tmp_path / "other.json"
    rows("reassignments", "begin", file(SWAPPED), "--yes", "--rollback", str(other))
    assert json.loads(other.read_text())["partitions"][0]["replicas"] == [2, 1]
    brokers.topics["orders"].replicas = (1, 2)
    assert brokers.asked(ALTER)[0].allow_replication_factor_change


@pytest.mark.slow
def test_way_back_of_a_move_that_is_begun_again_is_that_of_the_first_time(
    brokers, rows, command, file, tmp_path
):
    both = [{"topic": "orders", "partition": number, "replicas": [3, 2]} for number in (0, 1)]
    moves, back = file({"version": 1, "partitions": both}), tmp_path / "before.json"
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0, 0))
    rows("reassignments", "begin", moves, "--yes", "--rollback", str(back))
    first = back.read_text()
    brokers.on(LIST, under_way(0, 1))
    brokers.topics["orders"].replicas = (3, 2, 1)
    rows("reassignments", "begin", moves, "--yes", "--rollback", str(back))
    assert back.read_text() == first
    brokers.on(LIST, under_way())
    brokers.topics["orders"].replicas = (1, 2)
    # A file of something else is not lost either.
    asked = len(brokers.asked(ALTER))
    for text in (assignment_text({FIRST: (5,)}).encode(), b"my notes", b"\xe9"):
        back.write_bytes(text)
        done = command("reassignments", "begin", moves, "--yes", "--rollback", str(back))
        assert (done.exit_code, "it is there, and leads elsewhere" in done.stderr) == (2, True)
        assert back.read_bytes() == text
    assert len(brokers.asked(ALTER)) == asked


def test_way_back_that_cannot_be_kept_begins_nothing(brokers, command, file, tmp_path):
    brokers.on(LIST, under_way())
    nowhere = ("--rollback", str(tmp_path / "no" / "where"))
    done = command("reassignments", "begin", file(SWAPPED), "--yes", *nowhere)
    assert (done.exit_code, "where" in done.stderr) == (2, True)
    assert brokers.asked(ALTER) == []


def test_file_comes_from_a_pipe(brokers, command):
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", "-", "--yes", input=json.dumps(SWAPPED))
    assert (done.exit_code, done.stderr) == (0, "began to move 1 partition\n")


def test_file_that_cannot_be_read_is_named(command, tmp_path):
    done = command("reassignments", "begin", str(tmp_path / "gone"))
    assert (done.exit_code, "gone" in done.stderr) == (2, True)
    (tmp_path / "latin").write_bytes(b"\xe9")
    done = command("reassignments", "begin", str(tmp_path / "latin"))
    assert (done.exit_code, "no UTF-8" in done.stderr) == (2, True)


def test_standard_input_that_is_no_assignment_is_named(command):
    done = command("reassignments", "begin", "-", input="{")
    assert (done.exit_code, "standard input" in done.stderr) == (2, True)


@pytest.fixture
def patient(monkeypatch):
    """Waits take no time."""
    return stop_clock(monkeypatch, moving, routing)


def test_wait_ends_when_nothing_is_under_way(brokers, command, file, patient):
    def end(call):
        brokers.topics["orders"].replicas = (2, 1)
        return under_way()

    brokers.on(LIST, under_way(), under_way(0), under_way(0), end)
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", file(SWAPPED), "--yes", "--wait", "--json")
    assert done.exit_code == 0, done.stderr
    assert [row["result"] for row in json.loads(done.stdout)] == ["moved"]
    assert done.stderr.splitlines() == [
        "began to move 1 partition",
        "1 of 1 partition under way",
        "moved 1 partition",
    ]
    assert sum(patient.slept) == 2


def test_the_end_of_a_move_may_be_news_to_the_broker_that_is_asked(brokers, command, file, patient):
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    since = count()

    def hear_late(call):
        if brokers.asked(ALTER) and next(since) == 6:
            brokers.topics["orders"].replicas = (2, 1)
        return DEFAULT

    brokers.on("Metadata", hear_late)
    done = command("reassignments", "begin", file(SWAPPED), "--yes", "--wait", "--json")
    assert done.exit_code == 0, done.stderr
    assert [row["result"] for row in json.loads(done.stdout)] == ["moved"]
    assert patient.slept


@pytest.mark.slow
def test_move_that_was_cancelled_by_somebody_is_told(brokers, command, file, patient):
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", file(SWAPPED), "--yes", "--wait", "--json")
    assert (done.exit_code, json.loads(done.stdout)[0]["result"]) == (1, "begun")
    assert "other replicas than asked for: orders-0: cancelled by somebody?" in done.stderr


def in_folders(there, *, future=()):
    """Answers DescribeLogDirs: orders-0 is in the folder `there`, and on its way to another."""
    folders = [test_log_dirs.folder(there, 7)]
    folders += [test_log_dirs.folder(path, 3, is_future=True) for path in future]
    return DescribeLogDirsResponse(results=tuple(folders))


@pytest.mark.slow
def test_folders_are_chosen_before_the_move_and_waited_for(brokers, command, file, patient):
    asked = json.loads(json.dumps(SWAPPED))
    asked["partitions"][0]["log_dirs"] = ["/b", "/a"]
    brokers.on("DescribeLogDirs", in_folders("/a"), node=1)

    def moved(call):
        assert brokers.asked(ALTER) == []
        return test_log_dirs.moved(0)

    def end(call):
        brokers.topics["orders"].replicas = (2, 1)
        return under_way()

    brokers.on("AlterReplicaLogDirs", moved, node=2)
    brokers.on(LIST, under_way(), end)
    brokers.on(ALTER, altered(0))
    copying = in_folders("/a", future=("/b",))
    brokers.on("DescribeLogDirs", in_folders("/a"), copying, in_folders("/b"), node=2)
    words = ("reassignments", "begin", file(asked))
    done = command(*words, "--yes", "--wait")
    assert done.exit_code == 0, done.stderr
    assert "1 of 1 partition under way\nmoved 1 partition\n" in done.stderr
    (request,) = brokers.asked("AlterReplicaLogDirs")
    assert [item.path for item in request.dirs] == ["/b"]


def test_only_a_folder_may_be_another(brokers, command, file, patient):
    asked = json.loads(json.dumps(AS_IT_IS))
    asked["partitions"][0]["log_dirs"] = ["/b", "any"]
    brokers.on("DescribeLogDirs", in_folders("/a"), in_folders("/b"))
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(0))
    brokers.on(LIST, under_way())
    done = command("reassignments", "begin", file(asked), "--wait", input="y\n")
    assert done.exit_code == 0, done.stderr
    assert "orders          0  1, 2    1, 2   1:/b\n" in done.stderr
    assert brokers.asked(ALTER) == []


def test_way_back_names_the_folders_that_replicas_leave(brokers, command, file, tmp_path):
    """It had no partition at all where a file moves replicas between folders alone."""
    asked, before = (
        {"version": 1, "partitions": [AS_IT_IS["partitions"][0] | {"log_dirs": folders}]}
        for folders in (["/b", "any"], ["/a", "any"])
    )
    brokers.on("DescribeLogDirs", in_folders("/a"))
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(0))
    brokers.on(LIST, under_way())
    back = tmp_path / "before.json"
    words = ("reassignments", "begin", file(asked), "--yes", "--rollback", str(back))
    assert command(*words).exit_code == 0
    assert json.loads(back.read_text()) == before
    # Begun again it is the same move; one from elsewhere is another.
    brokers.on("DescribeLogDirs", in_folders("/a", future=("/b",)))
    assert command(*words).exit_code == 0
    brokers.on("DescribeLogDirs", in_folders("/c"))
    done = command(*words)
    assert (done.exit_code, "it is there, and leads elsewhere" in done.stderr) == (2, True)
    assert json.loads(back.read_text()) == before


def test_wait_for_a_copy_that_came_to_nothing_ends(brokers, command, file, patient):
    """Its folder had failed, or its topic was deleted: the wait went on for ever."""
    asked = json.loads(json.dumps(AS_IT_IS))
    asked["partitions"][0]["log_dirs"] = ["/b", "any"]
    copying, failed = in_folders("/a", future=("/b",)), in_folders("/a")
    brokers.on("DescribeLogDirs", in_folders("/a"), failed, copying, *[failed] * 12)
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(0))
    brokers.on(LIST, under_way())
    done = command("reassignments", "begin", file(asked), "--yes", "--wait", "--json")
    assert (done.exit_code, json.loads(done.stdout)[0]["result"]) == (1, "begun")
    said = "not there, and not being copied there any more: orders-0 of broker 1 in /b: "
    assert f"{said}the topic was deleted, a folder has failed" in done.stderr
    assert "moved 1 partition" not in done.stderr


def test_a_replica_that_is_being_copied_away_is_kept_where_it_is(brokers, command, file, patient):
    """The way back of a move that is under way: it was said to be there, and left."""
    asked = json.loads(json.dumps(AS_IT_IS))
    asked["partitions"][0]["log_dirs"] = ["/a", "any"]
    copying = in_folders("/a", future=("/b",))
    brokers.on("DescribeLogDirs", copying, copying, in_folders("/a"))
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(0))
    brokers.on(LIST, under_way())
    done = command("reassignments", "begin", file(asked), "--yes", "--wait")
    assert done.exit_code == 0, done.stderr
    (request,) = brokers.asked("AlterReplicaLogDirs")
    assert [item.path for item in request.dirs] == ["/a"]
    assert done.stderr.endswith("moved 1 partition\n")


@pytest.mark.parametrize("refused", ["folder", "throttle", "move"])
def test_copy_to_a_folder_that_has_begun_is_told_where_the_rest_is_refused(
    brokers, command, file, refused
):
    entry = {"topic": "orders", "replicas": [1, 2], "log_dirs": ["/b", "any"]}
    other = {"topic": "orders", "replicas": [2, 1], "log_dirs": ["any", "/b"]}
    asked = {"version": 1, "partitions": [entry | {"partition": 0}, other | {"partition": 1}]}
    brokers.on("DescribeLogDirs", in_folders("/a"))
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(0, 57 if refused == "folder" else 9))
    brokers.on("DescribeConfigs", close() if refused == "throttle" else DescribeConfigsResponse())
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(39, 39))
    words = ["--yes", "--json", *(["--throttle", "5"] if refused == "throttle" else [])]
    words += ["-X", "default.api.timeout.ms=1000"]
    done = command("reassignments", "begin", file(asked), *words)
    assert done.exit_code != 0
    assert [(row["partition"], row["result"]) for row in json.loads(done.stdout)] == [(0, "begun")]


THIRD = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}
THROTTLED = ("--yes", "--throttle", "5000")


@pytest.mark.slow
def test_throttle_is_taken_back_after_the_wait(brokers, command, file, patient, settings):
    seen = []

    def look(call):
        seen.append(settings.get(("broker", "1"), {}).get("leader.replication.throttled.rate"))
        return under_way()

    brokers.on(LIST, look)
    brokers.on(ALTER, altered(0))
    command("reassignments", "begin", file(THIRD), *THROTTLED, "--wait")
    assert "5000" in seen
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


@pytest.mark.slow
def test_throttle_that_others_are_in_need_of_stays_and_that_is_said(
    brokers,
    command,
    file,
    patient,
    settings,
):
    def moving(call):
        """Another partition is, all the time; and ours is moved as soon as it was asked for."""
        return under_way() if call.request.topics else under_way(1)

    brokers.on(LIST, moving)
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", file(THIRD), *THROTTLED, "--wait")
    assert "1, 2: these brokers keep the rates" in done.stderr
    assert settings["broker", "1"]
    assert settings["topic", "orders"] == {}


RATE_OF_FOLDERS = "replica.alter.log.dirs.io.max.bytes.per.second"


def test_copies_between_folders_are_bounded_until_the_wait_is_over(
    brokers,
    command,
    file,
    patient,
    settings,
):
    asked = json.loads(json.dumps(AS_IT_IS))
    asked["partitions"][0]["log_dirs"] = ["/b", "any"]
    here = in_folders("/a")
    copying = in_folders("/a", future=("/b",))
    brokers.on("DescribeLogDirs", here, here, copying, in_folders("/b"))
    seen = []

    def moved(call):
        seen.append(settings["broker", "1"][RATE_OF_FOLDERS])
        return test_log_dirs.moved(0)

    brokers.on("AlterReplicaLogDirs", moved)
    brokers.on(LIST, under_way())
    words = ("--yes", "--replica-alter-log-dirs-throttle", "5000", "--wait")
    done = command("reassignments", "begin", file(asked), *words)
    assert done.exit_code == 0, done.stderr
    assert seen == ["5000"]
    assert settings == {("broker", "1"): {}}


def test_copies_that_are_refused_leave_no_rate(
    brokers,
    command,
    file,
    settings,
):
    asked = json.loads(json.dumps(AS_IT_IS))
    asked["partitions"][0]["log_dirs"] = ["/b", "any"]
    brokers.on("DescribeLogDirs", in_folders("/a"))
    brokers.on("AlterReplicaLogDirs", test_log_dirs.moved(57))
    brokers.on(LIST, under_way())
    words = ("--yes", "--replica-alter-log-dirs-throttle", "5000")
    done = command("reassignments", "begin", file(asked), *words)
    assert done.exit_code == 1
    assert settings == {("broker", "1"): {}}


@pytest.mark.slow
def test_throttle_stays_without_a_wait_and_that_is_said(brokers, command, file, settings):
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", file(THIRD), *THROTTLED)
    assert "unthrottle` takes it back" in done.stderr
    assert settings["broker", "1"]
    assert [
        item["name"]
        for item in json.loads(command("reassignments", "unthrottle", "orders", "--json").stdout)
    ] == ["1", "2", "orders"]
    assert settings["broker", "1"] == {}
    assert command("reassignments", "unthrottle").stderr == "no throttle is set\n"


def test_throttle_that_cannot_be_taken_back_is_told(
    brokers,
    command,
    file,
    patient,
    monkeypatch,
    settings,
):
    def refuse(*_, **__):
        raise BrokerError(40, "IncrementalAlterConfigs", "broker '1'", "no")

    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    monkeypatch.setattr(KafkaCluster, "end_throttle", refuse)
    done = command("reassignments", "begin", file(THIRD), *THROTTLED, "--wait", "--json")
    assert done.exit_code == 1
    assert "unthrottle` takes it back" in done.stderr
    assert [row["result"] for row in json.loads(done.stdout)] == ["begun"]


def test_throttle_of_what_is_refused_is_taken_back(brokers, command, file, settings):
    brokers.on(ALTER, altered(39, message="no such broker"))
    done = command("reassignments", "begin", file(THIRD), *THROTTLED, "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert settings["broker", "1"] == {}


@pytest.mark.slow
def test_what_is_refused_in_part_is_begun_in_part(brokers, command, file, settings):
    two = {
        "version": 1,
        "partitions": [*THIRD["partitions"], {"topic": "orders", "partition": 1, "replicas": [9]}],
    }
    brokers.on(ALTER, altered(0, 39, message="no such broker"))
    done = command("reassignments", "begin", file(two), *THROTTLED, "--wait", "--json")
    assert done.exit_code == 1
    assert [row["partition"] for row in json.loads(done.stdout)] == [0]
    assert "began to move 1 partition\n" in done.stderr
    assert "unthrottle` takes it back" in done.stderr
    assert settings["broker", "1"]


def test_interrupt_leaves_the_move_and_its_throttle(
    brokers,
    command,
    file,
    monkeypatch,
    settings,
):
    def interrupt(_):
        raise KeyboardInterrupt

    brokers.on(LIST, under_way(), under_way(), under_way(0))
    brokers.on(ALTER, altered(0))
    monkeypatch.setattr(moving.time, "sleep", interrupt)
    done = command("reassignments", "begin", file(THIRD), *THROTTLED, "--wait", "--json")
    assert done.exit_code == 130
    assert [row["result"] for row in json.loads(done.stdout)] == ["begun"]
    assert "brokers go on moving what is under way" in done.stderr
    assert "unthrottle` takes it back" in done.stderr
    assert settings["broker", "1"]


def test_interrupt_of_the_beginning_tells_of_the_throttle(
    brokers,
    command,
    file,
    monkeypatch,
    settings,
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(KafkaCluster, "reassign_partitions", interrupt)
    done = command("reassignments", "begin", file(THIRD), *THROTTLED)
    assert (done.exit_code, "unthrottle` takes it back" in done.stderr) == (130, True)


@pytest.mark.parametrize("words", [["--yes"], ["--dry-run"], ["--yes", "--throttle", "5"]])
def test_nothing_begins_where_a_broker_is_none(brokers, command, file, words):
    brokers.versions["DescribeCluster"] = (0, 2)
    brokers.on("DescribeCluster", registered(1, 2, 3, away={3}))
    brokers.on(LIST, under_way())
    moves = [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]
    moves += [{"topic": "orders", "partition": 1, "replicas": [1, 9, 8, 3]}]
    done = command("reassignments", "begin", file({"version": 1, "partitions": moves}), *words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "Error: there is no broker 8, 9: the cluster has the brokers 1, 2, 3\n"
    assert brokers.asked(ALTER) == []


@pytest.mark.parametrize("knows", [(1, 2, 3), None])
def test_moves_to_a_broker_that_is_away_begin(brokers, command, file, knows):
    if knows:  # brokers before Kafka 4.0 tell of those alone that run
        brokers.versions["DescribeCluster"] = (0, 2)
        # The first that is asked has not heard of it yet.
        brokers.on("DescribeCluster", registered(1, 2), registered(*knows, away={3}))
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(0))
    done = command("reassignments", "begin", file(THIRD), "--yes")
    assert (done.exit_code, done.stderr) == (0, "began to move 1 partition\n")


def test_number_of_replicas_is_kept_on_request(brokers, command, file):
    brokers.on(LIST, under_way())
    brokers.on(ALTER, altered(38, message="The replication factor is changed"))
    words = ("--yes", "--keep-replication-factor")
    done = command("reassignments", "begin", file(SWAPPED), *words)
    assert (done.exit_code, "factor is changed" in done.stderr) == (1, True)
    assert not brokers.asked(ALTER)[0].allow_replication_factor_change


def test_list_shows_what_comes_and_what_goes(brokers, command, rows):
    brokers.on(LIST, under_way(1))
    assert command("reassignments", "list").stdout.splitlines() == [
        "Topic   Partition  Replicas  Adding  Removing",
        "orders          1  3, 2, 1   3       1",
    ]
    assert rows("reassignments", "list", "orders:1")[0]["adding"] == [3]
    brokers.on(LIST, under_way())
    done = command("reassignments", "list")
    assert (done.stdout, done.stderr) == ("", "no replicas are being moved\n")


def test_cancel_that_is_refused_in_part_tells_of_the_rest(brokers, command):
    brokers.on(LIST, under_way(0, 1))
    brokers.on(ALTER, altered(0, 85))
    done = command("reassignments", "cancel", "--all", "--yes", "--json")
    assert (done.exit_code, "nothing is under way" in done.stderr) == (1, True)
    assert json.loads(done.stdout) == [{"topic": "orders", "partition": 0, "result": "cancelled"}]
    done = command("reassignments", "cancel", "--all", "--yes")
    assert "cancelled the moves of 1 partition\n" in done.stderr


def test_cancel_of_all_leaves_out_what_ends_meanwhile(brokers, command):
    brokers.on(LIST, under_way(0, 1), under_way())
    brokers.on(ALTER, altered(0, 85))
    done = command("reassignments", "cancel", "--all", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == [{"topic": "orders", "partition": 0, "result": "cancelled"}]


def test_cancel_of_what_is_over_is_refused_where_it_is_named(brokers, command):
    brokers.on(LIST, under_way(0, 1), under_way())
    brokers.on(ALTER, altered(0, 85))
    done = command("reassignments", "cancel", "orders", "--yes")
    assert (done.exit_code, "nothing is under way" in done.stderr) == (1, True)


def test_throttles_that_stay_in_part_are_told_with_those_that_are_gone(
    brokers,
    command,
    settings,
):
    settings["broker", "2"] = {"leader.replication.throttled.rate": "1"}
    settings["topic", "orders"] = {"leader.replication.throttled.replicas": "*"}
    part = IncrementalAlterConfigsResponse.Resource
    refused = part(error_code=40, error_message="no", resource_type=4, resource_name="2")
    brokers.on(
        "IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(refused,)), node=2
    )
    done = command("reassignments", "unthrottle", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == [
        {
            "type": "topic",
            "name": "orders",
            "settings": ["leader.replication.throttled.replicas"],
            "result": "removed",
        }
    ]


@pytest.mark.slow
def test_cancel_asks_and_tells(brokers, command, rows):
    brokers.on(LIST, under_way(0))
    brokers.on(ALTER, altered(0))
    assert command("reassignments", "cancel").exit_code == 2
    assert command("reassignments", "cancel", "orders", "--all").exit_code == 2
    done = command("reassignments", "cancel", "--all", input="n\n")
    assert (done.exit_code, "moves of orders-0?" in done.stderr) == (1, True)
    assert brokers.asked(ALTER) == []
    assert rows("reassignments", "cancel", "orders:0", "--yes") == [
        {"topic": "orders", "partition": 0, "result": "cancelled"}
    ]
    brokers.on(LIST, under_way())
    assert command("reassignments", "cancel", "--all").stderr == "no replicas are being moved\n"
