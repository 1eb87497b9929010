"""`kafkaproto leaders`, `quorum`, `features` and `brokers` over fake brokers."""

from __future__ import annotations

import json
import re

import pytest

from pyspark_kafkaproto.cluster.admin.features import METADATA_VERSION, level_of_release
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.unregister_broker import UnregisterBrokerResponse
from pyspark_kafkaproto.messages.update_features import UpdateFeaturesResponse
from tests.fake_broker import close
from tests.unit.cluster.admin import test_elections, test_features, test_log_dirs, test_quorum


@pytest.mark.slow
def test_leaders_are_elected_and_what_needed_none_is_counted(brokers, command, rows):
    brokers.on("ElectLeaders", test_elections.elected(0, 84))
    done = command("leaders", "elect", "orders")
    assert done.stdout.splitlines()[1:] == ["orders          0  elected"]
    assert done.stderr == "1 elected, 1 needed no election\n"
    assert [row["result"] for row in rows("leaders", "elect", "orders:0,1")] == [
        "elected",
        "not needed",
    ]
    assert command("leaders", "elect").exit_code == 2
    assert command("leaders", "elect", "orders", "--all").exit_code == 2


@pytest.mark.slow
def test_election_that_fails_tells_of_the_others(brokers, command):
    brokers.on("ElectLeaders", test_elections.elected(0, 80))
    done = command("leaders", "elect", "orders", "--json")
    assert (done.exit_code, len(json.loads(done.stdout))) == (1, 1)
    assert "orders-1" in done.stderr


def test_unclean_election_asks_first(brokers, command):
    brokers.on("ElectLeaders", test_elections.elected(0, 84))
    done = command("leaders", "elect", "orders", "--unclean", input="n\n")
    assert (done.exit_code, "may lack records" in done.stderr) == (1, True)
    assert brokers.asked("ElectLeaders") == []
    assert command("leaders", "elect", "orders", "--unclean", "--yes").exit_code == 0
    assert brokers.asked("ElectLeaders")[0].election_type == 1


def test_quorum_is_a_line_and_a_table(brokers, command):
    state = test_quorum.state
    told = test_quorum.answer([state(2, 90), state(1, 100, last_fetch_timestamp=0)], [state(5, 80)])
    brokers.on("DescribeQuorum", told)
    assert command("quorum").stdout.splitlines() == [
        "leader 1 in epoch 7, high watermark 90",
        "",
        "Node  Role      LogEnd  Lag  Last fetch                Last caught up",
        "   1  leader       100    0  1970-01-01T00:00:00.000Z  -",
        "   2  voter         90   10  -                         -",
        "   5  observer      80   20  -                         -",
    ]
    found = json.loads(command("quorum", "--json").stdout)
    assert (found["leader"], [item["lag"] for item in found["nodes"]]) == (1, [0, 10, 20])


@pytest.mark.slow
def test_features_are_listed_and_changed(brokers, command, rows):
    test_features.known(brokers)
    assert command("features", "list").stdout.splitlines() == [
        "Feature           Min          Max           Finalized",
        "group.version     0            1             0",
        "metadata.version  7 (3.3-IV3)  30 (4.3-IV0)  29 (4.2-IV1)",
    ]
    group, metadata = rows("features", "list")
    assert metadata["finalized"] == 29
    assert metadata["releases"]["finalized"] == "4.2-IV1"
    assert set(group["releases"].values()) == {None}
    assert {row["epoch"] for row in rows("features", "list")} == {5}
    brokers.on("UpdateFeatures", UpdateFeaturesResponse())
    words = ("features", "upgrade", "group.version=1", "metadata.version=4.3")
    done = command(*words, "--yes")
    assert done.stderr == "upgraded: group.version to 1, metadata.version to 30 (4.3-IV0)\n"
    assert rows("features", "upgrade", "group.version=1", "--validate-only") == [
        {"feature": "group.version", "level": 1, "result": "could be upgraded"}
    ]
    asked, first, second = brokers.asked("UpdateFeatures")
    assert asked.validate_only  # of several, whether all of them could be
    assert (first.validate_only, second.validate_only) == (False, True)
    assert command("features", "upgrade", "group.version").exit_code == 2
    for wrong in ("group.version=x", "group.version=4.3", "metadata.version=4.3-IV9"):
        assert command("features", "upgrade", wrong).exit_code == 2
    assert command("features", "upgrade", "group.version=99999").exit_code == 2


@pytest.mark.parametrize("words", [["features"], ["features", "upgrade"]])
def test_examples_of_upgrades_name_no_level_below_that_of_a_new_cluster(command, words):
    """The dev broker's, which would refuse it as a downgrade."""
    shown = command(*words, "--help").stdout
    newest = level_of_release(METADATA_VERSION, DEFAULT_VERSION)
    for level in re.findall(r"features upgrade .*metadata\.version=(\S+)", shown):
        assert (level_of_release(METADATA_VERSION, level) or int(level)) == newest
    assert "metadata.version=" in shown


@pytest.mark.slow
def test_upgrade_is_asked_for(brokers, command):
    brokers.on("UpdateFeatures", UpdateFeaturesResponse())
    done = command("features", "upgrade", "metadata.version=4.1-IV1", input="n\n")
    assert done.exit_code == 1
    question = "Upgrade metadata.version to 27 (4.1-IV1)? metadata.version seldom goes back."
    assert question in done.stderr
    assert "goes back" not in command("features", "upgrade", "group.version=1", input="n\n").stderr
    assert brokers.asked("UpdateFeatures") == []


@pytest.mark.slow
def test_downgrade_is_asked_for(brokers, command):
    test_features.known(brokers)
    brokers.on("UpdateFeatures", UpdateFeaturesResponse())
    words = ("features", "downgrade", "group.version=0")
    assert command(*words, input="n\n").exit_code == 1
    assert command(*words, "--validate-only").exit_code == 0
    assert "is lost" in command(*words, "--unsafe", input="n\n").stderr
    assert command(*words, "--unsafe", "--yes").exit_code == 0
    types = [item.feature_updates[0].upgrade_type for item in brokers.asked("UpdateFeatures")]
    assert types == [2, 3]


def test_folders_are_listed(brokers, command, rows):
    folder = test_log_dirs.folder("/a", 7, total_bytes=100, usable_bytes=40)
    brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder,)))
    assert command("brokers", "log-dirs", "2").stdout.splitlines() == [
        "Broker  Folder  Error  Total  Usable  Replicas  Size  Lag",
        "     2  /a      -        100      40         1     7    3",
    ]
    assert [row["logs"][0]["topic"] for row in rows("brokers", "log-dirs")] == ["orders"] * 2


@pytest.mark.slow
def test_folders_are_listed_though_a_broker_goes_as_it_is_asked(brokers, command):
    """One that has died is among all brokers for some seconds yet."""

    dead = brokers.nodes[2]

    def die(call):
        brokers.nodes.pop(2, None)
        return close()

    folder = test_log_dirs.folder("/a", 7)
    brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder,)), node=1)
    brokers.on("DescribeLogDirs", die, node=2)
    done = command("brokers", "log-dirs", "--json")
    assert [row["broker"] for row in json.loads(done.stdout)] == [1]
    assert (done.exit_code, "broker 2: REPLICA_NOT_AVAILABLE" in done.stderr) == (1, True)
    dead.close()


@pytest.mark.slow
def test_unregistering_asks_and_says_that_the_broker_runs(brokers, command, rows):
    brokers.on("UnregisterBroker", UnregisterBrokerResponse())
    done = command("brokers", "unregister", "2", input="n\n")
    assert (done.exit_code, "Broker 2 runs" in done.stderr) == (1, True)
    done = command("brokers", "unregister", "7", input="n\n")
    assert (done.exit_code, "runs" in done.stderr) == (1, False)
    assert brokers.asked("UnregisterBroker") == []
    assert rows("brokers", "unregister", "7", "--yes") == [{"broker": 7, "result": "unregistered"}]
