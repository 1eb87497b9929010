"""Delegation tokens of a real broker: as Kafka's own tool has them, and what logs in with them."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import Consumer, KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.error_codes import DELEGATION_TOKEN_NOT_FOUND
from pyspark_kafkaproto.errors import AuthenticationFailed, BrokerError, ConnectionFailed
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import ClientConfig, Connection, ConsumerConfig, Deadline
from tests.secure_broker import TOPIC, token_login

pytestmark = pytest.mark.broker

DESCRIBE = ("--describe", "--owner-principal", "User:reports")  # without, it shows none
HELD = TopicPartition(TOPIC, 0)


@pytest.fixture(scope="module")
def reports(secure):
    """The cluster as `reports`, logged in with its password."""
    with KafkaCluster(secure.as_user("reports")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def operator(secure):
    with KafkaCluster(secure.as_user("operator")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tool(secure, tmp_path_factory):
    """Kafka's own tool for tokens, as `reports`; gives what it prints."""
    file = tmp_path_factory.mktemp("tool") / "client.properties"
    own = secure.as_user("reports") | {"default.api.timeout.ms": "60000"}
    # JSON's escapes are among those of Java's properties.
    file.write_text("".join(f"{name}={json.dumps(value)[1:-1]}\n" for name, value in own.items()))

    def run(*arguments):
        return secure.broker.run_tool(
            "org.apache.kafka.tools.DelegationTokenCommand",
            *("--bootstrap-server", secure.broker.addresses("SASL")),
            *("--command-config", str(file), *arguments),
        )

    return run


def with_token(secure, token, mechanism="SCRAM-SHA-512", listener="SASL"):
    return secure.properties(listener) | token.login(mechanism)


def end_of_topic(properties):
    with KafkaCluster(properties) as cluster:
        return cluster.get_latest_leader_offsets({HELD})[HELD]


def ids(cluster, *owners):
    return {token.token_id for token in cluster.describe_delegation_tokens(set(owners) or None)}


def until(ask, is_so):
    """What `ask` gives once `is_so`: changes reach the broker a moment after they are made."""
    deadline = Deadline.after(20)
    while not is_so(found := ask()):
        deadline.check("waiting for a change to be seen")
        time.sleep(0.05)
    return found


# Beside Kafka's own tool


def test_the_tool_shows_what_we_made_and_ends_it(reports, tool):
    made = reports.create_delegation_token(renewers={"User:x", "User:y"}, max_lifetime_s=3600)
    (line,) = [line for line in tool(*DESCRIBE).splitlines() if made.token_id in line]
    assert made.hmac.reveal() in line
    assert line.count("User:reports") == 2  # its owner, and who requested it
    for renewer in made.renewers:
        assert renewer in line
    (found,) = [
        item for item in reports.describe_delegation_tokens() if item.token_id == made.token_id
    ]
    assert found == made
    assert made.max_timestamp_ms - made.issue_timestamp_ms == 3_600_000
    tool("--expire", "--hmac", made.hmac.reveal(), "--expiry-time-period", "-1")
    until(lambda: ids(reports), lambda found: made.token_id not in found)


def test_we_list_renew_and_expire_what_the_tool_made(secure, reports, tool):
    before = ids(reports)
    shown = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:x")
    (new_id,) = until(lambda: ids(reports) - before, bool)
    made = {item.token_id: item for item in reports.describe_delegation_tokens()}[new_id]
    assert new_id in shown
    assert made.hmac.reveal() in shown
    assert (made.owner, made.requester, made.renewers) == (
        *("User:reports", "User:reports"),
        ("User:x",),
    )
    assert end_of_topic(with_token(secure, made)) == 3
    expires = reports.renew_delegation_token(made.hmac, 3600)
    known = until(
        lambda: {item.token_id: item for item in reports.describe_delegation_tokens()}[new_id],
        lambda item: item.expiry_timestamp_ms == expires,
    )
    assert known.max_timestamp_ms == made.max_timestamp_ms
    assert new_id in tool(*DESCRIBE)
    assert reports.expire_delegation_token(made) is None
    until(lambda: tool(*DESCRIBE), lambda text: new_id not in text)


# Logging in


@pytest.mark.parametrize("listener", ["SASL", "BOTH"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_by_either_mechanism(secure, reports, mechanism, listener):
    token = reports.create_delegation_token()
    assert end_of_topic(with_token(secure, token, mechanism, listener)) == 3
    as_documented = {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": token_login(token.token_id, token.hmac.reveal()),
    }
    assert end_of_topic(secure.properties(listener) | as_documented) == 3


def test_a_topic_is_written_and_read_with_the_rights_of_the_owner(secure, new_name):
    user, topic = "owner-of-a-token", new_name()
    secure.add_sha512_user(user)
    secure.allow(user, ("WRITE", "Topic", topic), ("READ", "Topic", topic), ("READ", "Group", "g"))
    with secure.window() as cluster:
        cluster.create_topics([NewTopic(topic, 1, 1)])
    with KafkaCluster(secure.as_user(user)) as cluster:
        properties = with_token(secure, cluster.create_delegation_token())
    with Producer(properties, topic=topic) as producer:
        producer.send([ProducerRecord("by a token")])
    own = properties | {"group.id": "g", "auto.offset.reset": "earliest"}
    deadline = Deadline.after(20)
    with Consumer(ConsumerConfig.parse(own), {topic}) as consumer:
        while (batch := consumer.poll(0.2)) is None:
            deadline.check("reading with a token")
    assert [row["value"] for row in batch.to_pylist()] == [b"by a token"]
    with (
        KafkaCluster(properties) as cluster,
        pytest.raises(BrokerError, match="needs the right DESCRIBE on the topic"),
    ):
        cluster.get_latest_leader_offsets({HELD})


def test_a_connection_goes_on_while_its_token_is_renewed_and_no_longer(secure, reports):
    token = reports.create_delegation_token()
    soon_ms = reports.expire_delegation_token(token, 12)
    until(
        lambda: {item.token_id: item for item in reports.describe_delegation_tokens()},
        lambda found: found[token.token_id].expiry_timestamp_ms == soon_ms,
    )
    config = ClientConfig.parse(with_token(secure, token))
    place, ask = config.bootstrap_servers[0], MetadataRequest(topics=())
    deadline = Deadline.after(120)

    def ask_on(connection, deadline):
        while connection.request(ask, deadline).brokers:
            deadline.check("waiting for the end of a token")

    with closing(Connection.open(place, config, deadline)) as connection:
        assert 0 < connection.login_ends_at - time.monotonic() <= 12
        later_ms = reports.renew_delegation_token(token, 24)
        while time.time() * 1000 < soon_ms + 500:
            assert connection.request(ask, deadline).brokers
        assert connection.is_open
        # In the last second no login is renewed, and the broker may be the first to see the end.
        with pytest.raises((AuthenticationFailed, ConnectionFailed), match=r"has expired|closed"):
            ask_on(connection, deadline)
        assert time.time() * 1000 >= later_ms - 1000
    with pytest.raises(AuthenticationFailed, match=r"has expired.*kafkaproto tokens create"):
        end_of_topic(with_token(secure, token))
    with pytest.raises(BrokerError, match=r"DELEGATION_TOKEN_EXPIRED.*make another one"):
        reports.renew_delegation_token(token)


def test_a_token_that_is_gone_logs_in_no_more(secure, reports):
    token = reports.create_delegation_token()
    reports.expire_delegation_token(token)

    def refusal():
        try:
            end_of_topic(with_token(secure, token))
        except AuthenticationFailed as error:
            return str(error)
        return ""

    said = until(refusal, bool)
    assert "this broker knows no such delegation token" in said
    assert token.hmac.reveal() not in said
    for change in (reports.renew_delegation_token, reports.expire_delegation_token):
        with pytest.raises(BrokerError, match="there is no token with this HMAC") as caught:
            change(token)
        assert caught.value.code == DELEGATION_TOKEN_NOT_FOUND


# Who may what; rights: test_rights.py


def test_requester_owner_and_renewer(secure, operator, reports):
    secure.add_sha512_user("scheduler")
    with KafkaCluster(secure.as_user("scheduler")) as scheduler:
        before = ids(scheduler)  # the page's recipes may have run on this broker
        token = operator.create_delegation_token("User:reports", {"User:scheduler"})
        assert (token.owner, token.requester) == ("User:reports", "User:operator")
        assert ids(scheduler) - before == {token.token_id}
        assert ids(scheduler, "User:scheduler") - before == {token.token_id}
        assert ids(scheduler, "User:nobody") == set()
        assert scheduler.renew_delegation_token(token, 60) > token.issue_timestamp_ms
    with pytest.raises(BrokerError, match=r"OWNER_MISMATCH.*its owner and its renewers alone"):
        operator.renew_delegation_token(token)
    with KafkaCluster(with_token(secure, token)) as of_token, secure.window() as window:
        assert of_token.get_latest_leader_offsets({HELD}) == {HELD: 3}
        for cluster in (of_token, window):
            for ask in (cluster.create_delegation_token, cluster.describe_delegation_tokens):
                with pytest.raises(BrokerError, match=r"NOT_ALLOWED.*and not with a token"):
                    ask()
    assert reports.expire_delegation_token(token) is None


def test_renewers_are_users(reports):
    with pytest.raises(BrokerError, match=r"INVALID_PRINCIPAL_TYPE.*renewers are users"):
        reports.create_delegation_token(renewers={"Group:x"})


# The commands


def test_the_file_that_a_command_writes_logs_in(secure, tmp_path):
    file = tmp_path / "token.properties"
    own = secure.as_user("reports")
    environ = {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in own.items()}

    def command(*words, of=environ):
        done = CliRunner(env=of).invoke(kafkaproto, words)
        assert done.exit_code == 0, done.output
        return done

    told = command("tokens", "create", "--max-lifetime", "1h", "--to", str(file)).stderr
    (token_id,) = re.findall(r"created: (\S+) of User:reports", told)
    plain = {name: value for name, value in environ.items() if "SASL" not in value}
    plain |= {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    plain |= {"KAFKA_SASL_JAAS_CONFIG": "", "KAFKA_SASL_MECHANISM": ""}
    assert "3" in command("offsets", TOPIC, "-F", str(file), of=plain).stdout
    command("tokens", "renew", token_id, "--for", "30m")
    assert token_id in command("tokens", "list").stdout
    command("tokens", "expire", token_id, "--yes")
    until(lambda: command("tokens", "list").stdout, lambda text: token_id not in text)
