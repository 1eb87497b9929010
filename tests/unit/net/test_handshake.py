"""What a connection begins with: versions of both sides, and peers that are no brokers."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import ClientConfig, Connection, Endpoint
from tests.fake_broker import DEFAULT, STALL, close, in_version, raw
from tests.unit.net.talking import ALL_TOPICS, SOON_S, config_of, opened, soon


def test_asks_for_versions_once_and_speaks_the_highest_of_both(cluster):
    cluster.versions["Metadata"] = (0, 8)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == 8
        assert connection.version_for(MetadataRequest, most=5) == 5
        assert connection.request(ALL_TOPICS, soon()).topics[0].name == "orders"
    assert [(call.api, call.header.api_version) for call in cluster.calls] == [
        ("ApiVersions", 4),
        ("Metadata", 8),
    ]


def test_our_highest_version_where_the_broker_has_more(cluster):
    cluster.versions["Metadata"] = (0, 99)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == MetadataRequest.VERSIONS.max


def test_names_itself_to_the_broker(cluster):
    with opened(cluster, client_id="me"):
        pass
    call = cluster.calls[0]
    assert call.header.client_id == "me"
    assert call.request.client_software_name == "pyspark-kafkaproto"
    assert call.request.client_software_version


def test_older_broker_answers_error_35_in_v0_and_is_asked_in_its_own_version(cluster):
    cluster.versions["ApiVersions"] = (0, 3)
    with opened(cluster) as connection:
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
    assert [call.header.api_version for call in cluster.calls if call.api == "ApiVersions"] == [3]


def test_error_35_without_a_range_is_followed_by_v0(cluster):
    refusal = in_version(ApiVersionsResponse(error_code=35), 0)
    cluster.on("ApiVersions", refusal, DEFAULT)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == 13
    assert [call.header.api_version for call in cluster.calls] == [4, 0]


@pytest.mark.parametrize("code", [35, 56])
def test_versions_refused_for_good_is_a_broker_error(cluster, code):
    cluster.on("ApiVersions", in_version(ApiVersionsResponse(error_code=code), 0))
    if code != 35:
        cluster.on("ApiVersions", ApiVersionsResponse(error_code=code))
    with pytest.raises(BrokerError, match=f"ApiVersions: broker 127.*{code}") as caught:
        Connection.open(Endpoint.parse(cluster.address()), config_of(cluster), soon())
    assert caught.value.code == code


def test_no_common_version_names_both_ranges(cluster):
    cluster.versions["Metadata"] = (90, 99)
    with opened(cluster) as connection, pytest.raises(UnsupportedVersion) as caught:
        connection.request(ALL_TOPICS, soon())
    ours = MetadataRequest.VERSIONS
    assert str(caught.value) == (
        f"broker {cluster.address()} speaks Metadata 90 to 99, this package {ours.min} to "
        f"{ours.max}"
    )


def test_text_that_no_version_can_carry_is_not_blamed_on_the_broker(cluster):
    cluster.versions["Metadata"] = (0, 12)
    request = MetadataRequest(topics=(MetadataRequest.Topic(name="a\udcff"),))
    with opened(cluster) as connection, pytest.raises(LocalProtocolError) as caught:
        connection.request(request, soon())
    assert str(caught.value) == (
        "Metadata request v12: topics[0].name: 'a\\udcff' cannot be UTF-8, as all text in Kafka "
        "is: write it without '\\udcff'"
    )


def test_client_id_that_is_no_text_is_named(cluster):
    endpoint = Endpoint.parse(cluster.address())
    with pytest.raises(LocalProtocolError, match=r"client\.id: 'a\\udcff' cannot be UTF-8"):
        Connection.open(endpoint, config_of(cluster, client_id="a\udcff"), soon())


def test_most_below_the_brokers_least_is_unsupported(cluster):
    with (
        opened(cluster) as connection,
        pytest.raises(UnsupportedVersion, match="Fetch 4 to 17, this package 0 to 3"),
    ):
        connection.version_for(FetchRequest, most=3)


def test_api_that_is_not_offered_is_unsupported_and_costs_no_connection(cluster):
    with opened(cluster) as connection:
        with pytest.raises(UnsupportedVersion, match="does not offer Heartbeat"):
            connection.request(HeartbeatRequest(), soon())
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"


HANDSHAKE_ERRORS = [
    pytest.param(close(), ConnectionFailed, "handshake failed: .*TLS listener does this"),
    pytest.param(STALL, DeadlineExceeded, "is this a Kafka listener.*not done within 0.05 s"),
    pytest.param(raw(b"HTTP/1.1 400 Bad Request"), RemoteProtocolError, "is this a Kafka listener"),
    pytest.param(raw(b"\x15\x03\x03\x00\x02\x02\x50"), RemoteProtocolError, "TLS alert"),
    # Within what an answer may be, far more than the answer to a handshake is: not waited for.
    pytest.param(raw(b"\x0f\0\0\0"), RemoteProtocolError, "frame of 251658240 bytes"),
    pytest.param(raw(b"SSH-2.0-OpenSSH"), RemoteProtocolError, "is this a Kafka listener"),
]


@pytest.mark.parametrize(("fault", "error", "text"), HANDSHAKE_ERRORS)
@pytest.mark.parametrize("cap", [1000, 2**31 - 1])
def test_peer_that_is_no_plaintext_broker_is_found_out(cluster, fault, error, text, cap):
    cluster.on("ApiVersions", fault)
    config = config_of(cluster, receive_message_max_bytes=cap)
    with pytest.raises(error, match=text):
        Connection.open(
            Endpoint.parse(cluster.address()),
            config,
            soon(SOON_S if error is DeadlineExceeded else 5),
        )


def test_handshake_ends_with_the_time_for_setup(cluster):
    cluster.on("ApiVersions", STALL)
    config = ClientConfig.parse(
        {"bootstrap.servers": cluster.address(), "socket.connection.setup.timeout.ms": 50}
    )
    told = r"handshake \(connected, and nothing answers.*not done within 0\.05 s"
    with pytest.raises(DeadlineExceeded, match=told):
        Connection.open(Endpoint.parse(cluster.address()), config, soon(60))
