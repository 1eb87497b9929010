"""ACLs, SCRAM users and quotas of a real broker, and beside what Kafka's own tools make of them."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster.admin import (
    Acl,
    AclFilter,
    QuotaEntity,
    QuotaFilter,
    QuotaName,
    ScramCredential,
)
from pyspark_kafkaproto.error_codes import TOPIC_AUTHORIZATION_FAILED
from pyspark_kafkaproto.errors import AuthenticationFailed, BrokerError, ConfigError
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline
from tests.brokers import config_command
from tests.secure_broker import PASSWORD, TOPIC

pytestmark = pytest.mark.broker

STRANGE = "o=d, d 'x' %41"


@pytest.fixture(scope="module")
def cluster(secure):
    with secure.window() as opened:
        yield opened


@pytest.fixture
def command(secure):
    def run(*words, **options):
        environ = {"KAFKA_BOOTSTRAP_SERVERS": secure.broker.addresses("INSIDE")}
        done = CliRunner(env=environ).invoke(kafkaproto, words, **options)
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.fixture(scope="module")
def tool(secure):
    def run(name, *arguments):
        pointed = ("--bootstrap-server", secure.broker.bootstrap_servers, *arguments)
        return secure.broker.run_tool(name, *pointed)

    return run


def settled(ask, is_so):
    """What `ask` gives once `is_so`: changes reach the broker a moment after they are made."""
    deadline = Deadline.after(10)
    while not is_so(found := ask()):
        deadline.check("waiting for a change to be seen")
    return found


def rights(cluster, principal, count):
    """All that `principal` has, without saying whose."""
    ask = lambda: cluster.describe_acls(AclFilter(principal=principal))  # noqa: E731
    return {
        (acl.resource_type, acl.resource_name, acl.pattern_type, acl.host, acl.operation)
        for acl in settled(ask, lambda found: len(found) == count)
    }


def test_the_words_producer_and_consumer_mean_what_kafka_acls_means(cluster, command, tool):
    given = ("--producer", "--consumer", "--idempotent", "--topic", "t", "--group", "g")
    tool(
        "org.apache.kafka.tools.AclCommand",
        *("--add", "--allow-principal", "User:by-tool", *given, "--transactional-id", "x"),
    )
    command("acls", "add", "--principal", "User:by-us", *given, "--transactional-id", "x")
    assert rights(cluster, "User:by-us", 8) == rights(cluster, "User:by-tool", 8)
    gone = command(
        *("acls", "delete", "--principal", "User:by-tool", *given, "--transactional-id", "x"),
        "--yes",
    )
    assert "8 ACLs deleted" in gone
    assert rights(cluster, "User:by-tool", 0) == set()


def test_brokers_compare_the_addresses_of_hosts_alone(secure, cluster, tool):
    """Kafka's own tool takes a name; so whoever denies by it denies nothing."""
    secure.add_sha512_user("hosted")
    secure.allow("hosted", ("DESCRIBE", "topic", TOPIC))
    for_all = ("--topic", TOPIC, "--operation", "describe", "--deny-principal", "User:hosted")
    tool("org.apache.kafka.tools.AclCommand", "--add", *for_all, "--deny-host", "localhost")
    rights(cluster, "User:hosted", 2)
    with KafkaCluster(secure.as_user("hosted")) as mine:
        assert mine.describe({TOPIC}).has(TOPIC)
        deny = {"principal": "User:hosted", "operation": "describe", "permission": "deny"}
        with pytest.raises(ConfigError, match="brokers look no names up"):
            cluster.create_acls({Acl("topic", TOPIC, host="localhost", **deny)})
        cluster.create_acls({Acl("topic", TOPIC, host="127.0.0.1", **deny)})
        settled(
            lambda: mine.describe({TOPIC}).topics[TOPIC].error_code,
            lambda code: code == TOPIC_AUTHORIZATION_FAILED,
        )


def test_the_tool_lists_what_we_made(cluster, tool):
    acls = {
        Acl(
            "topic",
            "listed-",
            pattern_type="prefixed",
            principal=f"User:{STRANGE}",
            host="10.0.0.1",
            operation="describe-configs",
            permission="deny",
        ),
        Acl("topic", "listed-one", principal="User:a", operation="all"),
        Acl("topic", "listed-one", principal="User:*", operation="read"),
    }
    for _ in range(2):  # the second time they are there already
        cluster.create_acls(acls)
    wanted = AclFilter("topic", "listed-one", "match")
    assert (
        set(settled(lambda: cluster.describe_acls(wanted), lambda found: len(found) == 3)) == acls
    )
    text = tool(
        "org.apache.kafka.tools.AclCommand",
        *("--list", "--topic", "listed-one", "--resource-pattern-type", "match"),
    )
    listed = re.findall(
        r"principal=(.*?), host=(.*?), operation=(\w+), permissionType=(\w+)\)", text
    )
    assert set(listed) == {
        (acl.principal, acl.host, acl.operation.replace("-", "_").upper(), acl.permission.upper())
        for acl in acls
    }
    found = cluster.delete_acls({wanted, AclFilter("topic", "nowhere")})
    assert found == {wanted: sorted(acls), AclFilter("topic", "nowhere"): []}


def test_each_type_of_resource_and_many_at_once(cluster):
    acls = {
        Acl(kind, name, principal="User:of-all-kinds", operation=operation)
        for kind, name, operation in (
            ("group", "*", "delete"),
            ("cluster", "kafka-cluster", "idempotent-write"),
            ("transactional-id", "x", "two-phase-commit"),
            ("delegation-token", "x", "describe"),
            ("user", "User:x", "create-tokens"),
        )
    } | {
        Acl("topic", f"many-{number}", principal="User:of-all-kinds", operation="write")
        for number in range(1200)
    }
    cluster.create_acls(acls)
    own = AclFilter(principal="User:of-all-kinds")
    found = settled(lambda: cluster.describe_acls(own), lambda found: len(found) == len(acls))
    assert set(found) == acls
    deleted = cluster.delete_acls({AclFilter.of(acl) for acl in acls})
    assert {acl for each in deleted.values() for acl in each} == acls
    assert settled(lambda: cluster.describe_acls(own), lambda found: not found) == []


def log_in(secure, user, mechanism):
    """Whether the user gets in, with PASSWORD."""
    config = ClientConfig.parse(secure.as_user(user, mechanism))
    try:
        Connection.open(config.bootstrap_servers[0], config, Deadline.after(20)).close()
    except AuthenticationFailed:
        return False
    return True


def test_users_log_in_until_they_are_deleted(secure, cluster, command, tool):
    command("users", "set", STRANGE, "--password-file", "-", "--json", input=PASSWORD)
    cluster.set_users({ScramCredential(STRANGE, PASSWORD, "SCRAM-SHA-256", 16_384)})
    there = {"SCRAM-SHA-256": 16_384, "SCRAM-SHA-512": 4096}
    is_made = {STRANGE: there}.__eq__
    settled(lambda: _described(cluster, STRANGE), is_made)
    assert cluster.describe_users()[STRANGE] == there
    for mechanism in there:
        settled(lambda own=mechanism: log_in(secure, STRANGE, own), bool)
    shown = tool(config_command(secure.broker), "--describe", "--entity-type", "users")
    (line,) = [line for line in shown.splitlines() if f"'{STRANGE}' are " in line]
    assert set(line.partition(" are ")[2].split(", ")) == {
        f"{mechanism}=iterations={rounds}" for mechanism, rounds in there.items()
    }

    cluster.delete_users({STRANGE}, {"SCRAM-SHA-256"})
    settled(lambda: not log_in(secure, STRANGE, "SCRAM-SHA-256"), bool)
    with pytest.raises(BrokerError, match=r"SCRAM-SHA-256.*RESOURCE_NOT_FOUND"):
        cluster.delete_users({STRANGE}, there)
    assert log_in(secure, STRANGE, "SCRAM-SHA-512")
    assert cluster.delete_users({STRANGE}) == {(STRANGE, "SCRAM-SHA-512")}
    settled(lambda: not log_in(secure, STRANGE, "SCRAM-SHA-512"), bool)
    with pytest.raises(BrokerError, match=r"RESOURCE_NOT_FOUND.*no such credential"):
        cluster.delete_users({STRANGE}, {"SCRAM-SHA-512"})


def _described(cluster, user):
    try:
        return cluster.describe_users({user})
    except BrokerError:
        return {}


def test_another_password_takes_the_place_of_the_first(secure, cluster):
    cluster.set_users({ScramCredential("renewed", PASSWORD)})
    settled(lambda: log_in(secure, "renewed", "SCRAM-SHA-512"), bool)
    cluster.set_users({ScramCredential("renewed", "another one")})
    settled(lambda: not log_in(secure, "renewed", "SCRAM-SHA-512"), bool)


def test_quotas_are_what_the_tool_shows_and_the_reverse(secure, cluster, tool):
    loader = QuotaEntity(STRANGE, QuotaName.DEFAULT)
    address = QuotaEntity(ip="10.0.0.1")
    changes = {
        loader: {"consumer_byte_rate": 20_000, "request_percentage": 12.5},
        address: {"connection_creation_rate": 7},
    }
    cluster.alter_quotas(
        {loader: {"consumer_byte_rate": 1}, address: changes[address]}, validate_only=True
    )
    cluster.alter_quotas(changes)
    found = settled(cluster.describe_quotas, lambda found: len(found) >= 2)
    assert {entity: found[entity] for entity in changes} == changes
    shown = tool(
        config_command(secure.broker),
        *("--describe", "--entity-type", "users", "--entity-name", STRANGE),
        *("--entity-type", "clients", "--entity-default"),
    )
    assert "the default client-id" in shown
    assert "consumer_byte_rate=20000.0" in shown
    assert "request_percentage=12.5" in shown

    of_users = QuotaFilter(user=QuotaName.ANY)
    assert cluster.describe_quotas(of_users) == {loader: changes[loader]}
    assert cluster.describe_quotas(QuotaFilter(user=STRANGE, is_strict=True)) == {}
    with pytest.raises(BrokerError, match=r"INVALID_REQUEST.*fractional") as caught:
        cluster.alter_quotas({loader: {"consumer_byte_rate": 1.5}, address: {}})
    assert caught.value.usable == {}
    for _ in range(2):  # the second time there is nothing to remove
        cluster.alter_quotas({entity: dict.fromkeys(own) for entity, own in changes.items()})
    assert settled(lambda: cluster.describe_quotas(of_users), lambda found: not found) == {}


def test_rights_are_what_lets_a_user_do_all_this(secure, cluster):
    """The command's exit codes for want of them: tests/unit/cli; each one: test_rights.py."""
    secure.add_sha512_user("keeper")
    secure.allow("keeper", ("ALTER", "Cluster", "kafka-cluster"))
    made = Acl("topic", "kept", principal="User:of-keeper", operation="read")
    with KafkaCluster(secure.as_user("keeper")) as window:
        settled(lambda: _may(window, made), bool)
        with pytest.raises(BrokerError, match="needs the right ALTER_CONFIGS on the cluster"):
            window.alter_quotas({QuotaEntity(user="x"): {"consumer_byte_rate": 1}})
    assert rights(cluster, "User:of-keeper", 1)


def _may(window, acl):
    try:
        window.create_acls({acl})
    except BrokerError:
        return False
    return True
