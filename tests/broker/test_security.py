"""Every kind of listener of a real broker: what works, and how each mistake is told."""

import logging
from contextlib import closing

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline
from tests.certificates import Authority
from tests.secure_broker import NOWHERE, PASSWORD, TOPIC, login

pytestmark = pytest.mark.broker

HELD = {TopicPartition(TOPIC, 0)}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


def end_of(properties):
    """The end of the topic, asked for with these properties."""
    with KafkaCluster(properties) as cluster:
        return cluster.get_latest_leader_offsets(HELD)[TopicPartition(TOPIC, 0)]


def operator(mechanism):
    """The user who may do everything; Kafka's PLAIN users stand in the broker's own file."""
    return "alice" if mechanism == "PLAIN" else "operator"


# What works


@pytest.mark.parametrize("listener", ["SASL", "BOTH"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_logs_in(secure, mechanism, listener):
    given = secure.as_user(operator(mechanism), mechanism) | secure.properties(listener)
    assert end_of(given) == 3


def test_tls_with_certificates_of_both_sides(secure, tmp_path):
    me = secure.authority.issue("operator")
    as_file = {"ssl.keystore.location": me.pem_file(tmp_path / "me.pem")}
    as_text = {"ssl.keystore.key": me.key_pem(), "ssl.keystore.certificate.chain": me.chain_pem}
    as_store = {
        "ssl.keystore.location": me.pkcs12_file(tmp_path / "me.p12", "pw"),
        "ssl.keystore.password": "pw",
        "ssl.truststore.location": secure.authority.pkcs12_file(tmp_path / "ca.p12", "pw"),
        "ssl.truststore.password": "pw",
    }
    for own in (as_file, as_text, as_store):
        assert end_of(secure.properties("MUTUAL") | own) == 3
    assert end_of(secure.properties("TLS")) == 3


def test_a_login_that_ends_is_renewed_on_the_same_connection(secure):
    config = ClientConfig.parse(secure.as_user("operator", "SCRAM-SHA-256"))
    endpoint, deadline = config.bootstrap_servers[0], Deadline.after(60)
    ask = MetadataRequest(topics=())
    sent = []

    def logins():
        return sum(frame[:2] == b"\0\x11" for frame in sent)  # SaslHandshake

    with closing(
        Connection.open(
            endpoint, config, deadline, lambda way, frame, when: sent.append(b"".join(frame))
        )
    ) as connection:
        while logins() < 3:
            deadline.check("three log-ins")
            # Two at a time: what is under way when the login ends must not be lost.
            connection.send(ask, deadline)
            connection.send(ask, deadline)
            assert connection.receive(deadline).message.brokers
            assert connection.receive(deadline).message.brokers
        assert connection.is_open
    assert not any(b"c=biws" in frame for frame in sent)  # their proofs are shown to nobody


# What does not


def mistakes(secure, folder):
    """Properties that are wrong in one way each; the error, and what it has to say."""
    own = secure.properties
    stranger = Authority("stranger")
    wrong = stranger.pem_file(folder / "other-ca.pem")
    key = stranger.issue("operator").pem_file(folder / "key.pem")
    trust = {"ssl.truststore.location": secure.ca}
    plain = secure.as_user("alice", "PLAIN")
    found = {
        "wrong CA": (own("TLS") | {"ssl.truststore.location": wrong}, AuthenticationFailed),
        "expired": (own("EXPIRED"), AuthenticationFailed),
        "wrong host": (own("STRANGER"), AuthenticationFailed),
        "no own certificate": (own("MUTUAL"), AuthenticationFailed),
        "own certificate unknown": (
            own("MUTUAL") | {"ssl.keystore.location": key},
            AuthenticationFailed,
        ),
        "plaintext to TLS": (
            {"bootstrap.servers": own("TLS")["bootstrap.servers"]},
            RemoteProtocolError,
        ),
        "TLS to plaintext": (
            own("INSIDE") | trust | {"security.protocol": "SSL"},
            ConnectionFailed,
        ),
        "no login": (own("SASL") | {"security.protocol": "PLAINTEXT"}, ConnectionFailed),
        "login not wanted": (
            plain | {"bootstrap.servers": own("INSIDE")["bootstrap.servers"]},
            AuthenticationFailed,
        ),
        "unknown user": (secure.as_user("nobody"), AuthenticationFailed),
    }
    for mechanism in MECHANISMS[:3]:
        jaas = login(mechanism, operator(mechanism), "not " + PASSWORD)
        given = own("SASL") | {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
        found[f"wrong password, {mechanism}"] = (given, AuthenticationFailed)
    return found


SAID = {
    "wrong CA": "not signed by an authority in .*other-ca.pem.*set ssl.truststore.location",
    "expired": "certificate has expired",
    "wrong host": "for another host than '127.0.0.1'.*advertised.listeners",
    "no own certificate": "wants a certificate of ours.*set ssl.keystore.location",
    "own certificate unknown": "does not accept our certificate.*ssl.keystore",
    "plaintext to TLS": "a TLS alert: set security.protocol to SSL or SASL_SSL",
    "TLS to plaintext": "a plaintext listener does this.*PLAINTEXT or SASL_PLAINTEXT",
    "no login": "a listener with SASL does this.*SASL_PLAINTEXT or SASL_SSL",
    "login not wanted": "knows no SASL: set security.protocol to PLAINTEXT",
    "unknown user": "SCRAM-SHA-512 authentication failed.*sasl.jaas.config",
    "wrong password, PLAIN": "PLAIN authentication failed.*Invalid username or password",
    "wrong password, SCRAM-SHA-256": "SCRAM-SHA-256.*invalid credentials",
    "wrong password, SCRAM-SHA-512": "SCRAM-SHA-512.*invalid credentials",
}


@pytest.mark.parametrize("mistake", SAID)
def test_each_mistake_has_an_error_of_its_own(secure, tmp_path, caplog, mistake):
    given, kind = mistakes(secure, tmp_path)[mistake]
    # What is tried again is tried for as long as a connection may take: not too long, here.
    patience = {"socket.connection.setup.timeout.ms": "2000"} if kind is ConnectionFailed else {}
    with caplog.at_level(logging.DEBUG), pytest.raises(kind, match=SAID[mistake]) as caught:
        end_of(given | patience)
    assert given["bootstrap.servers"] in str(caught.value)
    assert PASSWORD not in str(caught.value) + caplog.text
    retried = caplog.text.count("failed, again in")
    assert (retried > 0) == (kind is ConnectionFailed)


def test_an_advertised_address_that_clients_cannot_reach_and_the_cure(secure):
    outside = secure.properties("OUTSIDE", socket_connection_setup_timeout_ms="1000")
    with KafkaCluster(outside) as cluster:
        assert TOPIC in cluster.describe().topics  # the bootstrap address answers
    with pytest.raises(KafkaProtoError, match=f"'?{NOWHERE}.* does not resolve"):
        end_of(outside | {"default.api.timeout.ms": "2000"})
    assert end_of(secure.properties("INSIDE")) == 3
