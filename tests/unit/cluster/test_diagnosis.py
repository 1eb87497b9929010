"""The doctor: which hop is broken, and what to do; and what is wrong with partitions."""

from __future__ import annotations

import shlex

import pytest

from pyspark_kafkaproto.cluster.diagnosis import HOPS, _broken_hop
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from tests.fake_broker import DEFAULT, STALL, close, metadata, raw

READ_AND_DESCRIBE = 1 << 3 | 1 << 8
DESCRIBE = 1 << 8


def by_hop(findings, subject=""):
    return {item.hop: item for item in findings if subject in item.subject}


def with_rights(brokers, bits):
    def answer(call):
        found = metadata(brokers, call)
        topics = tuple(
            MetadataResponse.Topic(
                **{
                    name: getattr(topic, name)
                    for name in ("name", "error_code", "partitions", "topic_id")
                },
                topic_authorized_operations=bits,
            )
            for topic in found.topics
        )
        return MetadataResponse(brokers=found.brokers, cluster_id="fake", topics=topics)

    return answer


def test_all_is_well(brokers, kafka_at):
    with kafka_at(brokers.address(1)) as kafka:
        found = kafka.diagnose()
    assert [item.hop for item in found[:5]] == list(HOPS)
    assert {item.hop: item.result for item in found} == {
        "resolve": "ok",
        "connect": "ok",
        "TLS": "not used",
        "SASL": "not used",
        "versions": "ok",
        "metadata": "ok",
        "advertised address": "ok",
    }


@pytest.mark.parametrize(
    ("server", "broken", "advice"),
    [
        ("nowhere.invalid:9092", "resolve", "DNS"),
        ("127.0.0.1:1", "connect", "firewall"),
    ],
)
def test_broken_hop_is_named_and_what_follows_is_not_reached(kafka_at, server, broken, advice):
    with kafka_at(server) as kafka:
        found = kafka.diagnose({"orders"}, {"g"})
    hops = by_hop(found)
    assert list(hops) == list(HOPS)
    assert hops[broken].result == "broken"
    assert server in hops[broken].detail
    assert advice in hops[broken].advice
    assert hops["versions"].result == "not reached"


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_file_that_is_missing_breaks_tls_and_nothing_before_or_behind_it(
    brokers, kafka_at, tmp_path, name
):
    config = {"security.protocol": "SSL", name: str(tmp_path / "nowhere.pem")}
    with kafka_at(brokers.address(1), **config) as kafka:
        hops = by_hop(kafka.diagnose())
    assert [hops[hop].result for hop in HOPS] == ["ok", "ok", "broken", "not used", "not reached"]
    assert name in hops["TLS"].detail
    assert "truststore" in hops["TLS"].advice


def test_where_nobody_can_be_reached_that_comes_before_a_missing_file(kafka_at, tmp_path):
    config = {"ssl.truststore.location": str(tmp_path / "nowhere.pem")}
    with kafka_at("127.0.0.1:1", **config, **{"security.protocol": "SSL"}) as kafka:
        hops = by_hop(kafka.diagnose())
    assert (hops["connect"].result, hops["TLS"].result) == ("broken", "not reached")


@pytest.mark.slow
@pytest.mark.parametrize("said", [raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), STALL])
def test_peer_that_is_not_kafka_breaks_at_the_versions(brokers, kafka_at, said):
    brokers.on("ApiVersions", said)
    config = {"socket.connection.setup.timeout.ms": "200"}
    with kafka_at(brokers.address(1), **config) as kafka:
        hops = by_hop(kafka.diagnose())
    assert (hops["connect"].result, hops["versions"].result) == ("ok", "broken")


def test_each_error_belongs_to_a_hop():
    assert _broken_hop(AuthenticationFailed("b", "SCRAM-SHA-256", "no")) == "SASL"
    assert _broken_hop(AuthenticationFailed("b", "TLS", "no")) == "TLS"
    assert _broken_hop(ConnectionFailed("b", "TLS handshake", "no")) == "TLS"
    assert _broken_hop(ConnectionFailed("b", "token", "no")) == "SASL"
    assert _broken_hop(ConfigError("kafka.ssl.truststore.location", "ca.pem", "no")) == "TLS"
    assert _broken_hop(ConfigError("sasl.login.callback.handler.class", "a:b", "no")) == "SASL"
    for error in (
        ConnectionFailed("b", "handshake", "no"),
        DeadlineExceeded("b", 1),
        RemoteProtocolError("no"),
    ):
        assert _broken_hop(error) == "versions"


def test_a_listener_that_hangs_up_on_who_does_not_log_in_is_no_broker_that_starts(
    brokers, kafka_at
):
    """It tells its versions to everybody."""
    brokers.on("Metadata", close())
    with kafka_at(brokers.address(1)) as kafka:
        hops = by_hop(kafka.diagnose({"orders"}, {"g"}))
    assert (hops["versions"].result, hops["metadata"].result) == ("ok", "broken")
    assert "set security.protocol to SASL_PLAINTEXT" in hops["metadata"].detail
    assert "want a login" in hops["metadata"].advice
    assert (hops["coordinator"].result, hops["coordinator"].advice) == ("not reached", "")


def test_a_broker_that_knows_no_cluster_is_said_to_start(brokers, kafka_at):
    brokers.on("Metadata", MetadataResponse())
    with kafka_at(brokers.address(1)) as kafka:
        hops = by_hop(kafka.diagnose())
    assert hops["metadata"].result == "broken"
    assert "is starting" in hops["metadata"].advice


def test_wrong_advertised_address_says_which_line_to_set(brokers, kafka_at):
    brokers.advertised = {2: ("nowhere.invalid", 9092)}
    with kafka_at(brokers.address(1)) as kafka:
        found = kafka.diagnose()
    (wrong,) = [item for item in found if item.subject == "broker 2 at nowhere.invalid:9092"]
    assert wrong.result == "broken"
    assert f"advertised.listeners=PLAINTEXT://{brokers.address(1)}" in wrong.advice


def test_broker_that_was_given_and_is_away_is_no_wrong_address(brokers, kafka_at):
    away = brokers.address(2)
    brokers.stop(2)
    with kafka_at(brokers.bootstrap_servers) as kafka:
        found = kafka.diagnose()
    (wrong,) = [item for item in found if item.subject == f"broker 2 at {away}"]
    assert wrong.result == "broken"
    assert "is the broker running" in wrong.advice


@pytest.mark.parametrize(
    ("bits", "result", "detail"),
    [
        (READ_AND_DESCRIBE, "ok", "READ, DESCRIBE"),
        (DESCRIBE, "broken", "READ is missing; there is DESCRIBE"),
        (-(2**31), "ok", "does not tell"),
    ],
)
def test_rights_on_topics(brokers, kafka, bits, result, detail):
    brokers.on("Metadata", with_rights(brokers, bits))
    found = by_hop(kafka.diagnose({"orders"}), "orders")["rights"]
    assert found.result == result
    assert detail in found.detail


def test_topic_that_is_not_seen(kafka):
    found = by_hop(kafka.diagnose({"nope"}), "nope")["rights"]
    assert (found.result, found.detail) == ("broken", "UNKNOWN_TOPIC_OR_PARTITION (3)")


@pytest.mark.parametrize(
    ("code", "bits", "result"),
    [(0, READ_AND_DESCRIBE, "ok"), (0, DESCRIBE, "broken"), (30, 0, "broken")],
)
def test_rights_on_groups(brokers, kafka, code, bits, result):
    group = DescribeGroupsResponse.Group(group_id="g", error_code=code, authorized_operations=bits)
    brokers.on("DescribeGroups", DescribeGroupsResponse(groups=(group,)))
    hops = by_hop(kafka.diagnose((), {"g"}), "group 'g'")
    assert hops["coordinator"].result == "ok"
    assert hops["rights"].result == result
    assert ("--operation read --group" in hops["rights"].advice) == (result == "broken")


@pytest.mark.parametrize("name", ["g", "it's mine; rm -r ~"])
def test_the_command_that_gives_a_right_can_be_pasted(brokers, kafka, name):
    group = DescribeGroupsResponse.Group(group_id=name, authorized_operations=DESCRIBE)
    brokers.on("DescribeGroups", DescribeGroupsResponse(groups=(group,)))
    hops = by_hop(kafka.diagnose((), {name}), f"group {name!r}")
    given = ["acls", "add", "--principal", "User:…", "--operation", "read", "--group"]
    assert shlex.split(hops["rights"].advice) == ["kafkaproto", *given, name]


def test_group_whose_coordinator_may_not_be_seen(brokers, kafka):
    refused = FindCoordinatorResponse.Coordinator(key="g", error_code=30)
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(refused,)))
    found = by_hop(kafka.diagnose((), {"g"}), "group 'g'")
    assert (found["coordinator"].result, "rights" in found) == ("broken", False)


@pytest.mark.slow
@pytest.mark.parametrize("code", [15, 14, 16])
@pytest.mark.parametrize(("answers", "result"), [(2, "ok"), (1000, "broken")])
def test_a_cluster_that_never_had_a_group_is_given_time(
    brokers, kafka, clock, code, answers, result
):
    """Its topic of offsets is made when a coordinator is asked for the first time, and loaded."""
    group = DescribeGroupsResponse.Group
    well = DescribeGroupsResponse(groups=(group(authorized_operations=READ_AND_DESCRIBE),))
    if code == 15:
        not_yet = FindCoordinatorResponse.Coordinator(key="g", error_code=code)
        said = [FindCoordinatorResponse(coordinators=(not_yet,))] * answers
        brokers.on("FindCoordinator", *said, DEFAULT)
        brokers.on("DescribeGroups", well)
    else:
        said = [DescribeGroupsResponse(groups=(group(error_code=code),))] * answers
        brokers.on("DescribeGroups", *said, well)
    began = clock.now
    *_, found = kafka.diagnose((), {"g", "h"} if result == "broken" else {"g"})
    assert found.result == result
    assert ("__consumer_offsets" in found.advice) == (result == "broken")
    assert clock.now - began < 6


def test_partitions_that_are_not_well_are_explained(brokers, kafka):
    brokers.topics["orders"].leaders[1] = -1
    brokers.topics["empty"].error_code = 29
    problems = {item.subject: item for item in kafka.find_problems()}
    assert problems["partition orders-1"].what == "no leader"
    assert "replicas [1, 2], in sync [1], offline []" in problems["partition orders-1"].meaning
    assert problems["partition orders-0"].what == "too few replicas in sync"
    assert problems["topic 'empty'"].what == "TOPIC_AUTHORIZATION_FAILED"
    assert by_hop(kafka.diagnose({"orders"}), "orders-1")["replicas"].result == "broken"


def test_a_coordinator_that_is_not_there_is_told_behind_who_it_is(brokers, kafka, unused_ports):
    (port,) = unused_ports(1)
    place = {"node_id": 2, "host": "127.0.0.1", "port": port}
    gone = FindCoordinatorResponse.Coordinator(key="g", **place)
    brokers.on("FindCoordinator", FindCoordinatorResponse(coordinators=(gone,)))
    known, lost = [item for item in kafka.diagnose((), {"g"}) if item.subject == "group 'g'"]
    assert (known.hop, known.result) == ("coordinator", "ok")
    assert (lost.hop, lost.result) == ("coordinator", "broken")
    assert str(port) in lost.detail
    assert lost.advice


def test_a_broker_that_takes_one_group_at_a_time_tells_its_coordinator(brokers, kafka):
    brokers.versions["FindCoordinator"] = (0, 3)
    brokers.on("DescribeGroups", DescribeGroupsResponse(groups=(DescribeGroupsResponse.Group(),)))
    findings = {item.hop: item for item in kafka.diagnose((), {"g"})}
    assert findings["coordinator"].result == "ok", findings["coordinator"]
