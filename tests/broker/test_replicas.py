"""Replicas, leaders, quorum and features beside Kafka's own tools, on three nodes."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import Producer
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import ConfigResource, KafkaCluster, NewTopic, TopicPartition
from pyspark_kafkaproto.cluster.admin import Reassignment, Replica
from pyspark_kafkaproto.cluster.admin.features import release_of
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION, DevBroker
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from tests.broker.filling import fill
from tests.pages import check_prints, commands_of, examples
from tests.waiting import until

pytestmark = pytest.mark.broker

OLDEST = "3.9.1"
TOOLS = "org.apache.kafka.tools"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
BIG = TopicPartition("big", 0)
# Much more than a second's worth of the throttle: the first answer is not held back by it.
SLOWLY, MANY = 1000, 20 * 9000


@pytest.fixture(scope="module", params=[OLDEST, DEFAULT_VERSION])
def trio(request):
    with DevBroker(nodes=3, version=request.param) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka(trio):
    with KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tool(trio):
    """Runs one of Kafka's tools."""

    def run(main_class, *words):
        return trio.run_tool(main_class, "--bootstrap-server", trio.bootstrap_servers, *words)

    return run


@pytest.fixture
def command(trio):
    """Runs a command of ours; gives its JSON, or what it printed."""

    def run(*words):
        done = CliRunner().invoke(kafkaproto, [*words, "-b", trio.bootstrap_servers])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if "--json" in words else done.output

    return run


@pytest.fixture(scope="module")
def big(kafka):
    """A partition that takes its time to be copied."""
    kafka.create_topics([NewTopic(BIG.topic, assignment={0: [1, 2]})])
    fill(kafka, {BIG: MANY})
    return BIG


def replicas(kafka, topic):
    partitions = kafka.describe({topic}, must_exist=True).topic(topic).partitions
    return {number: item.replicas for number, item in sorted(partitions.items())}


def throttles(kafka, topic):
    resources = [ConfigResource("topic", topic)]
    resources += [ConfigResource("broker", str(node_id)) for node_id in (1, 2, 3)]
    return {
        (resource.name, name): entry.value
        for resource, entries in kafka.describe_configs(resources).items()
        for name, entry in entries.items()
        if "replication.throttled" in name and entry.source in ("topic", "dynamic broker")
    }


def test_file_of_ours_moves_with_kafkas_tool_and_the_reverse(kafka, command, tool, tmp_path):
    kafka.create_topics([NewTopic("files", assignment={0: [1, 2], 1: [1, 2], 2: [2, 1]})])
    until(lambda: kafka.describe({"files"}).has("files"))
    ours = tmp_path / "ours.json"
    ours.write_text(command("reassignments", "propose", "files").splitlines()[0])
    wanted = {item["partition"]: item for item in json.loads(ours.read_text())["partitions"]}
    assert wanted
    given = ("--reassignment-json-file", str(ours))
    said = tool(REASSIGN, "--execute", *given)
    until(lambda: not kafka.list_reassignments())

    def is_done():
        found = replicas(kafka, "files")
        return all(list(found[at]) == item["replicas"] for at, item in wanted.items())

    until(is_done)
    assert "is completed" in tool(REASSIGN, "--verify", *given)
    # What it prints for going back names folders, too.
    back = tmp_path / "back.json"
    back.write_text(re.search(r"^\{.*\}$", said, re.MULTILINE)[0])
    assert "log_dirs" in back.read_text()
    rows = command("reassignments", "begin", str(back), "--yes", "--wait", "--json")
    assert {row["result"] for row in rows} == {"moved"}
    assert "is completed" in tool(REASSIGN, "--verify", "--reassignment-json-file", str(back))


def test_move_under_way_is_told_alike_and_can_be_cancelled(kafka, tool, big, command):
    throttle = kafka.throttle_reassignment({big: (3, 2)}, SLOWLY)
    kafka.reassign_partitions({big: (3, 2)})
    kafka.reassign_partitions({big: (3, 2)})  # no other move
    assert kafka.list_reassignments() == {big: Reassignment((3, 2, 1), (3,), (1,))}
    told = tool(REASSIGN, "--list")
    assert f"{big}: replicas: 3,2,1. adding: 3. removing: 1." in told
    (row,) = command("reassignments", "list", big.topic, "--json")
    assert (row["adding"], row["removing"]) == ([3], [1])
    assert kafka.cancel_reassignments() == {big}
    assert kafka.list_reassignments() == {}
    with pytest.raises(BrokerError, match="nothing is under way"):
        kafka.cancel_reassignments([big])
    assert kafka.end_throttle(throttle) == set()
    until(lambda: throttles(kafka, big.topic) == {})
    until(
        lambda: (
            replicas(kafka, big.topic) == {0: (1, 2)} or replicas(kafka, big.topic) == {0: (2, 1)}
        )
    )


def test_throttle_is_what_kafkas_tool_sets_and_either_removes_the_others(
    kafka, tool, big, command, tmp_path
):
    file = tmp_path / "moves.json"
    partitions = [{"topic": big.topic, "partition": 0, "replicas": [3, 2]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    given = ("--reassignment-json-file", str(file))
    tool(REASSIGN, "--execute", *given, "--throttle", str(SLOWLY))
    until(lambda: len(throttles(kafka, big.topic)) == 8)
    theirs = throttles(kafka, big.topic)
    kafka.cancel_reassignments()
    assert sum(map(len, kafka.remove_throttles().values())) == 8
    until(lambda: throttles(kafka, big.topic) == {})
    begun = command(
        "reassignments", "begin", str(file), "--throttle", str(SLOWLY), "--yes", "--json"
    )
    until(lambda: len(throttles(kafka, big.topic)) == 8)
    assert throttles(kafka, big.topic) == theirs
    assert begun[0]["result"] == "begun"
    tool(REASSIGN, "--cancel", *given)
    until(lambda: throttles(kafka, big.topic) == {})
    assert kafka.list_reassignments() == {}


def test_two_throttled_moves_at_once_leave_each_other_their_throttle(kafka):
    """Of one topic, too: the controller adds to its list, and takes from it."""
    full, empty = TopicPartition("two", 0), TopicPartition("two", 1)
    kafka.create_topics([NewTopic("two", assignment={0: [1, 2], 1: [1, 2]})])
    fill(kafka, {full: 5 * MANY})  # a broker takes a megabyte every ten seconds all the same
    first = kafka.throttle_reassignment({full: (3, 2)}, SLOWLY)
    kafka.reassign_partitions({full: (3, 2)})
    second = kafka.throttle_reassignment({empty: (3, 2)}, 2 * SLOWLY)
    named = "two", "follower.replication.throttled.replicas"
    until(lambda: throttles(kafka, "two").get(named) == "0:3,1:3")
    kafka.reassign_partitions({empty: (3, 2)})
    until(lambda: empty not in kafka.list_reassignments())
    assert {item.name for item in kafka.end_throttle(second)} == {"1", "2", "3"}
    until(lambda: throttles(kafka, "two").get(named) == "0:3")
    assert len(throttles(kafka, "two")) == 8
    assert kafka.cancel_reassignments() == {full}
    assert kafka.end_throttle(first) == set()
    until(lambda: throttles(kafka, "two") == {})


def test_copies_between_folders_have_a_throttle_that_goes(kafka, tool, tmp_path):
    """It is the setting of Kafka's tool, which takes it away as well."""
    name = "replica.alter.log.dirs.io.max.bytes.per.second"
    resource = ConfigResource("broker", "1")

    def rate():
        entry = kafka.describe_configs([resource])[resource].get(name)
        return entry.value if entry and entry.source == "dynamic broker" else None

    throttle = kafka.throttle_folders({1}, SLOWLY)
    until(lambda: rate() == str(SLOWLY))
    assert kafka.end_throttle(throttle) == set()
    until(lambda: rate() is None)
    kafka.throttle_folders({1}, SLOWLY)
    until(lambda: rate() == str(SLOWLY))
    kafka.create_topics([NewTopic("still", assignment={0: [1, 2]})])
    until(lambda: kafka.describe({"still"}).has("still"))
    file = tmp_path / "still.json"
    partitions = [{"topic": "still", "partition": 0, "replicas": [1, 2]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tool(REASSIGN, "--verify", "--reassignment-json-file", str(file))
    until(lambda: rate() is None)


def test_leaders_are_elected_as_kafkas_tool_elects_them(kafka, tool, command):
    kafka.create_topics([NewTopic("led", assignment={0: [1, 2], 1: [2, 1]})])
    first, second = TopicPartition("led", 0), TopicPartition("led", 1)
    until(lambda: kafka.describe({"led"}).has("led"))
    kafka.reassign_partitions({first: (2, 1)})
    assert kafka.elect_leaders([first, second]) == {first: True, second: False}
    assert kafka.elect_leaders([first, second]) == {first: False, second: False}
    until(lambda: kafka.find_leaders([first])[first].node_id == 2)
    kafka.reassign_partitions({first: (1, 2), second: (1, 2)})
    where = ("--election-type", "preferred", "--topic", "led", "--partition")
    assert "led-0" in tool(f"{TOOLS}.LeaderElectionCommand", *where, "0")
    rows = command("leaders", "elect", "led", "--json")
    assert [row["result"] for row in rows] == ["not needed", "elected"]
    assert kafka.elect_leaders()[second] is False


def test_number_of_replicas_is_kept_where_the_controller_can(trio, kafka, big):
    error = UnsupportedVersion if trio.version == OLDEST else BrokerError
    with pytest.raises(error, match=r"AlterPartitionReassignments"):
        kafka.reassign_partitions({big: (1, 2, 3)}, allow_replication_factor_change=False)


def test_quorum_is_as_kafkas_tool_tells(kafka, tool, command):
    text = tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication")
    told = {
        int(node_id): status.lower()
        for node_id, status in re.findall(r"^(\d+)\s.*\s(\w+)\s*$", text, re.MULTILINE)
    }
    found = command("quorum", "--json")
    assert {
        item["node"]: "leader" if item["role"] == "leader" else "follower"
        for item in found["nodes"]
    } == told
    assert all(item["lag"] is not None and item["last_fetch"] for item in found["nodes"])
    assert command("quorum").startswith(f"leader {found['leader']} in epoch")


def test_features_are_as_kafkas_tool_tells_and_change_for_both(kafka, tool, command):
    def theirs():
        text = tool(f"{TOOLS}.FeatureCommand", "describe")
        lines = re.findall(
            r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+"
            r"FinalizedVersionLevel: (\S+)\s",
            text,
        )
        # It has words for the levels of metadata.version.
        return {
            name: tuple(int(item) if item.isdecimal() else item for item in levels)
            for name, *levels in lines
        }

    def ours():
        found = kafka.describe_features().by_name
        return {
            name: tuple(release_of(name, level) or level for level in item)
            for name, item in found.items()
        }

    assert ours() == theirs()
    name = "group.version"
    for level in (0, 1) if name in ours() else ():  # 3.9 has none that could change
        way = "upgrade" if level else "downgrade"
        command("features", way, f"{name}={level}", "--validate-only")
        assert ours()[name][2] != level
        command("features", way, f"{name}={level}", "--yes")
        until(lambda level=level: ours()[name][2] == level)
    assert ours() == theirs()
    release = release_of(
        "metadata.version", kafka.describe_features().by_name["metadata.version"][2]
    )
    command("features", "upgrade", f"metadata.version={release}", "--validate-only")
    with pytest.raises(BrokerError, match=r"metadata.version.*INVALID_UPDATE_VERSION"):
        kafka.update_features({"metadata.version": 1})


def test_folders_are_as_kafkas_tool_tells(kafka, tool, big):
    text = tool(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", big.topic)
    told = json.loads(text.splitlines()[-1])
    found = kafka.describe_log_dirs()
    assert {
        (broker["broker"], folder["logDir"], item["partition"], item["size"])
        for broker in told["brokers"]
        for folder in broker["logDirs"]
        for item in folder["partitions"]
    } == {
        (node_id, path, str(partition), log.size_bytes)
        for node_id, folders in found.items()
        for path, folder in folders.items()
        for partition, log in folder.replicas.items()
        if partition.topic == big.topic
    }
    (path,) = found[1]
    assert found[1][path].usable_bytes
    # Where it is already is no move; where no replica is, the broker keeps it in mind.
    (its_path,) = found[3]
    here, nowhere = Replica(1, *big), Replica(3, *big)
    assert kafka.move_replicas({here: path, nowhere: its_path}) == {here: True, nowhere: False}
    with pytest.raises(BrokerError, match="there is no such partition"):
        kafka.move_replicas({Replica(1, big.topic, 9): path})
    with pytest.raises(BrokerError, match="has no such folder"):
        kafka.move_replicas({here: "/nowhere"})


def test_producers_with_an_open_transaction_are_told_as_kafkas_tool_tells(trio, kafka, tool):
    kafka.create_topics([NewTopic("written", 1, 3)])
    written = TopicPartition("written", 0)
    config = {"bootstrap.servers": trio.bootstrap_servers, "transactional.id": "writer"}
    with Producer(config) as producer:
        for is_first in (True, False):
            producer.begin_transaction()
            producer.send(pa.record_batch({"topic": ["written"], "value": ["order"]}))
            producer.flush()
            if is_first:
                producer.commit_transaction()
        (found,) = kafka.describe_producers([written])[written]
        text = tool(
            f"{TOOLS}.TransactionsCommand",
            *("describe-producers", "--topic", "written", "--partition", "0"),
        )
        told = list(map(int, text.splitlines()[1].split()))
        producer.abort_transaction()
    # The record and the marker of the first one stand before it.
    assert found.transaction_start_offset == 2
    assert told == [
        found.producer_id,
        found.epoch,
        found.coordinator_epoch,
        found.last_sequence,
        found.last_timestamp_ms,
        found.transaction_start_offset,
    ]


def has_registered(trio, kafka, *brokers):
    """Whether it is just those; before Kafka 4.0 no broker tells."""
    if trio.version != OLDEST:
        return kafka.registered_brokers() == set(brokers)
    with pytest.raises(UnsupportedVersion, match="DescribeCluster"):
        kafka.registered_brokers()
    return True


def test_broker_that_is_away_cannot_lead_and_is_left_out(trio, kafka, command):
    kafka.create_topics([NewTopic("away", assignment={0: [3, 1], 1: [1, 2]})])
    first = TopicPartition("away", 0)
    until(lambda: kafka.describe({"away"}).has("away"))
    trio.kill(3)

    def is_led_by_1():
        with suppress(BrokerError):  # who has not heard of the topic waits for a controller
            return kafka.find_leaders([first])[first].node_id == 1

    until(is_led_by_1, within_s=30)
    assert has_registered(trio, kafka, 1, 2, 3)
    with pytest.raises(BrokerError, match=r"away-0.*PREFERRED_LEADER_NOT_AVAILABLE.*is away"):
        kafka.elect_leaders([first])
    # What it has cannot stay there: its cluster will forget it.
    proposed = kafka.propose_reassignment({"away"})
    assert set(proposed[first]) == {1, 2}
    kafka.reassign_partitions(proposed)
    until(lambda: not kafka.list_reassignments(), within_s=30)
    command("brokers", "unregister", "3", "--yes")
    until(lambda: has_registered(trio, kafka, 1, 2))
    with pytest.raises(BrokerError, match="BROKER_ID_NOT_REGISTERED"):
        kafka.unregister_broker(3)
    trio.restart(3)
    until(lambda: 3 in kafka.describe(()).brokers, within_s=30)


@pytest.mark.long
@pytest.mark.parametrize("trio", [DEFAULT_VERSION], indirect=True)
def test_unclean_election_loses_what_the_new_leader_lacks(trio, kafka):
    partition = TopicPartition("unclean", 0)

    def state():
        return kafka.describe({partition.topic}).topic(partition.topic).partitions[0]

    kafka.create_topics([NewTopic(partition.topic, assignment={0: [2, 3]})])
    fill(kafka, {partition: 5})
    trio.kill(3)
    until(lambda: state().isr == (2,), within_s=40)
    fill(kafka, {partition: 5})
    trio.kill(2)
    trio.restart(3)
    until(lambda: state().leader_id == -1 and 3 in kafka.describe(()).brokers, within_s=40)
    with pytest.raises(BrokerError, match="PREFERRED_LEADER_NOT_AVAILABLE"):
        kafka.elect_leaders([partition])
    assert kafka.elect_leaders([partition], unclean=True) == {partition: True}
    assert kafka.find_leaders([partition])[partition].node_id == 3
    assert kafka.get_latest_leader_offsets([partition]) == {partition: 5}
    trio.restart(2)
    until(lambda: len(kafka.describe(()).brokers) == 3, within_s=40)


# What is another each time is compared with Kafka's tools above; transactions that are open, and
# what lies below them, in test_hanging_transactions.py.
ELSEWHERE = {"quorum", "log-dirs", "unthrottle", "transactions", "offsets"}


@pytest.mark.parametrize("trio", [DEFAULT_VERSION], indirect=True)
def test_page_shows_what_the_commands_print(trio, kafka, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kafka.create_topics(
        [
            NewTopic("orders", assignment={0: [1, 2], 1: [1, 2], 2: [1, 2], 3: [1, 3]}),
            NewTopic("payments", assignment={0: [1, 2]}),
        ]
    )
    fill(kafka, {TopicPartition("payments", 0): MANY})
    (tmp_path / "moves.json").write_text(
        CliRunner()
        .invoke(kafkaproto, ["reassignments", "propose", "orders", "-b", trio.bootstrap_servers])
        .stdout
    )
    partitions = [{"topic": "payments", "partition": 0, "replicas": [3, 2]}]
    (tmp_path / "payments.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    shown = [item for item in examples("brokers.md") if not ELSEWHERE & set(item[0].split())]
    assert commands_of(shown) == {"reassignments", "leaders", "features"}
    for line, text in shown:
        check_prints(line, text, trio.bootstrap_servers, plain)
    kafka.remove_throttles()


def plain(text):
    """Without what may be over before it is seen."""
    return re.sub(r"^\d+ of \d+ partitions? under way\n", "", text, flags=re.MULTILINE).strip("\n")
