"""Brokers of Kafka 3.9 with ZooKeeper: the controller is found, and what they lack is told.

Such a broker passes nothing on. The one that is asked first here is not the controller.
"""

from __future__ import annotations

import json
import logging
from functools import partial

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import Consumer, KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, NewTopic
from pyspark_kafkaproto.cluster.admin import QuotaEntity, ScramCredential
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from pyspark_kafkaproto.net import ClientConfig, connections_for
from tests.broker.filling import fill
from tests.broker.sharing import PARTITIONS, RECORDS, are_at, is_shared, open_member, poll_all
from tests.settled import wait_until_settled
from tests.waiting import until
from tests.zookeeper import ZooKeeperCluster

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def pair():
    with ZooKeeperCluster(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kafka(pair):
    """The cluster as one who knows but the broker that is not its controller."""
    with KafkaCluster({"bootstrap.servers": pair.bootstrap_servers}) as cluster:
        others = cluster.describe(set()).brokers.keys() - {controller(cluster)}
    with KafkaCluster({"bootstrap.servers": pair.address(min(others))}) as cluster:
        yield cluster


def controller(kafka):
    return kafka.describe(set()).controller_id


@pytest.fixture
def topic(pair, kafka, new_name):
    """A topic that every broker knows: the controller tells each on its own, in its own time."""
    name = new_name()
    kafka.create_topics([NewTopic(name, PARTITIONS, 2)])
    for address in pair.bootstrap_servers.split(","):
        until(partial(_leads, address, name), what=f"topic {name} at {address}")
    return name


def _leads(address, name):
    """Whether the broker at `address`, the only one known to who asks, names all leaders."""
    with KafkaCluster({"bootstrap.servers": address}) as cluster:
        found = cluster.describe({name})
    known = found.topic(name).partitions.values() if found.has(name) else ()
    return sum(own.leader_id != -1 for own in known) == PARTITIONS


def partitions_of(topic):
    return {TopicPartition(topic, number) for number in range(PARTITIONS)}


@pytest.fixture
def command(kafka):
    """Runs a command of ours; its JSON, or the error that it ends with."""

    def run(*words):
        (where,) = kafka.config.bootstrap_servers
        done = CliRunner().invoke(kafkaproto, [*words, "-b", str(where)])
        if done.exit_code:
            assert done.exit_code == 1, done.output
            return done.stderr
        return json.loads(done.stdout) if "--json" in words else done.output

    return run


def test_topics_are_made_changed_moved_and_deleted_by_the_controller(kafka, new_name):
    name = new_name()
    kafka.create_topics([NewTopic(name, assignment={0: [1], 1: [2]})])
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        kafka.create_topics([NewTopic(name, 1, 1)])
    own = ConfigResource("topic", name)
    kafka.alter_configs({own: [ConfigChange("retention.ms", "86400000")]})
    until(lambda: kafka.describe_configs({own})[own]["retention.ms"].value == "86400000")
    kafka.add_partitions({name: 3})
    until(lambda: len(kafka.get_partitions({name})) == 3)
    first = TopicPartition(name, 0)
    fill(kafka, {first: 20})
    kafka.delete_records({first: 5})
    assert kafka.get_earliest_leader_offsets({first}) == {first: 5}
    kafka.reassign_partitions({first: [2, 1]})
    until(lambda: not kafka.list_reassignments())
    until(lambda: set(kafka.describe({name}).topic(name).partitions[0].isr) == {1, 2})
    kafka.elect_leaders({first})
    until(lambda: kafka.describe({name}).topic(name).partitions[0].leader_id == 2)
    assert kafka.get_latest_leader_offsets({first}) == {first: 20}
    assert {folder.error for folder in _folders(kafka)} == {None}
    kafka.delete_topics({name})
    until(lambda: not kafka.describe({name}).has(name))


def _folders(kafka):
    return [folder for own in kafka.describe_log_dirs().values() for folder in own.values()]


def test_users_and_quotas(kafka):
    kafka.set_users([ScramCredential("reports", "secret", "SCRAM-SHA-256")])
    until(lambda: kafka.describe_users().get("reports") == {"SCRAM-SHA-256": 4096})
    kafka.delete_users({"reports"})
    until(lambda: "reports" not in kafka.describe_users())
    reports = QuotaEntity(user="reports")
    kafka.alter_quotas({reports: {"consumer_byte_rate": 1000.0}})
    until(lambda: kafka.describe_quotas() == {reports: {"consumer_byte_rate": 1000.0}})
    kafka.alter_quotas({reports: {"consumer_byte_rate": None}})
    until(lambda: not kafka.describe_quotas())


def test_what_is_written_in_each_way_is_read(kafka, topic):
    config = {"bootstrap.servers": str(kafka.config.bootstrap_servers[0])}
    wanted = []
    for codec in CODECS:
        for idempotence in ("true", "false"):
            given = {"compression.type": codec, "enable.idempotence": idempotence}
            wanted += _write(Producer(config | given, topic=topic), f"{codec}-{idempotence}")
    with Producer(config | {"transactional.id": topic}, topic=topic) as producer:
        for name, is_kept in (("first", True), ("dropped", False), ("last", True)):
            producer.begin_transaction()
            producer.send(_records(name))
            if is_kept:
                producer.commit_transaction()
                wanted += [record.value for record in _records(name)]
            else:
                producer.abort_transaction()
    wait_until_settled(config["bootstrap.servers"], partitions_of(topic))
    reading = ClientConfig.parse(config | {"isolation.level": "read_committed"})
    ranges = tuple(OffsetRange(*item, 0, None) for item in sorted(partitions_of(topic)))
    batches = read_batches(ReadTask(ranges), reading, ReadSettings(), schema_for(["value"]))
    found = [value.decode() for batch in batches for value in batch.column(0).to_pylist()]
    connections_for(reading).close()
    assert sorted(found) == sorted(wanted)


def _write(producer, name):
    with producer:
        producer.send(_records(name))
    return [record.value for record in _records(name)]


def _records(name):
    return [ProducerRecord(f"{name}-{n}", key=f"{n}") for n in range(30)]


@pytest.mark.parametrize(
    "assignor", ["cooperative-sticky", pytest.param("range", marks=pytest.mark.long)]
)
def test_members_read_on_when_a_leader_dies(pair, kafka, topic, assignor, caplog):
    """It is their coordinator, too, and for the first ones the controller."""
    caplog.set_level(logging.WARNING)
    opened = partial(
        open_member, pair, topic, topic, heartbeat_interval_ms=200, group_protocol="classic"
    )
    members = [opened(partition_assignment_strategy=assignor) for _ in range(2)]
    rows = poll_all(members, is_shared(*members), "two members")
    fill(kafka, dict.fromkeys(partitions_of(topic), RECORDS))
    rows += poll_all(members, are_at(members, RECORDS), "all rows")
    place = kafka._router.coordinators({topic}, kafka._router.deadline())[topic]
    brokers = kafka.describe(set()).brokers
    (node,) = (number for number, at in brokers.items() if at.endpoint == place)
    pair.kill(node)
    try:
        fill(kafka, dict.fromkeys(partitions_of(topic), RECORDS))
        rows += poll_all(members, are_at(members, 2 * RECORDS), "all rows after that")
        for one in members:
            one.commit()
            one.close()
        (lag,) = {item.lag for item in kafka.lag({topic})}
        assert lag == 0
    finally:
        pair.restart(node)
    assert rows == 2 * PARTITIONS * RECORDS, "nothing is read twice"
    assert "advertise" not in caplog.text, "the user gave the address that is away"
    first = TopicPartition(topic, 0)
    kafka.set_consumer_offsets(topic, {first: 7})
    assert kafka.get_consumer_offsets(topic, {first}) == {first: 7}
    kafka.delete_groups({topic})
    assert topic not in {group.group for group in kafka.list_groups()}


def test_what_such_a_cluster_lacks_is_said_by_name(pair, kafka, topic, command):
    with pytest.raises(UnsupportedVersion, match=r"no quorum where brokers keep .* in ZooKeeper"):
        kafka.describe_quorum()
    with pytest.raises(UnsupportedVersion, match=r"does not offer UnregisterBroker.*ZooKeeper"):
        kafka.unregister_broker(2)
    for kind in ("group", "client-metrics"):
        assert "in ZooKeeper, not in KRaft, have no such" in command(
            "configs", "describe", kind, "x"
        )
    assert "SECURITY_DISABLED (54): the cluster has no authorizer" in command("acls", "list")
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in command("tokens", "list")
    assert "not supported" in command("features", "upgrade", "group.version=1", "--yes")
    assert command("features", "list", "--json") == []
    assert {row["result"] for row in command("doctor", "--topic", topic, "--json")} <= {
        "ok",
        "not used",
    }
    given = {"bootstrap.servers": pair.bootstrap_servers, "group.id": "new"}
    with (
        Consumer(given | {"group.protocol": "consumer"}, {topic}) as member,
        pytest.raises(BrokerError, match=r"=consumer is switched off .* to classic"),
    ):
        member.poll(10)
