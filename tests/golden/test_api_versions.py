"""What other brokers offer, recorded with its origin, negotiated by our own connection.

api_versions.json holds what was found and nothing more: where a record is a part, the rest is left
out; null is an API that the broker named as unsupported.
"""

import json
from contextlib import closing
from pathlib import Path

import pytest

from pyspark_kafkaproto.cluster import CommittedOffset, KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import UnsupportedVersion
from pyspark_kafkaproto.messages import find_api, request_class
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from tests.fake_broker import VERSIONS, FakeCluster
from tests.unit.cluster.committing import FakeCoordinator

BROKERS = json.loads(Path(__file__).with_name("api_versions.json").read_text(encoding="utf-8"))
ORDERS = {TopicPartition("orders", 0)}

each_broker = pytest.mark.parametrize("name", BROKERS)


def offered(name):
    return {api: tuple(both) for api, both in BROKERS[name]["apis"].items() if both}


@pytest.fixture
def fake(name):
    """A cluster that says of its APIs what that broker said, and nothing of others."""
    with FakeCluster({"orders": 1}) as cluster:
        cluster.versions = {"ApiVersions": VERSIONS["ApiVersions"], **offered(name)}
        yield cluster


@each_broker
def test_each_api_gets_the_best_version_of_both_or_a_clear_error(name, fake):
    config = ClientConfig.parse({"bootstrap.servers": fake.bootstrap_servers})
    endpoint = Endpoint.parse(fake.bootstrap_servers, "broker")
    with closing(Connection.open(endpoint, config, Deadline.after(10))) as connection:
        for api, both in BROKERS[name]["apis"].items():
            request = request_class(api)
            ours = find_api(api).versions
            if both is None:
                with pytest.raises(UnsupportedVersion, match=f"does not offer {api}"):
                    connection.version_for(request)
                continue
            common = set(range(both[0], both[1] + 1)) & set(range(ours.min, ours.max + 1))
            assert connection.version_for(request) == max(common)


@pytest.mark.parametrize("name", [name for name in BROKERS if "OffsetFetch" in offered(name)])
def test_committed_offsets_are_found_at_each_broker_that_keeps_them(name, fake):
    fake.versions = {"OffsetCommit": VERSIONS["OffsetCommit"], **fake.versions}
    FakeCoordinator(fake, readers={("orders", 0): (7, "by hand")}, others={("orders", 0): (8, "")})
    with KafkaCluster({"bootstrap.servers": fake.bootstrap_servers}) as cluster:
        assert cluster.get_consumer_offsets("readers", ORDERS) == dict.fromkeys(ORDERS, 7)
        found = cluster.get_group_offsets({"readers", "others", "nobody"})
        partition = TopicPartition("orders", 0)
        assert {group: own.get(partition) for group, own in found.items()} == {
            "readers": CommittedOffset(7, "by hand"),
            "others": CommittedOffset(8),
            "nobody": None,
        }
        cluster.set_consumer_offsets("readers", dict.fromkeys(ORDERS, 9))
        assert cluster.get_consumer_offsets("readers", ORDERS) == dict.fromkeys(ORDERS, 9)
    # Whoever can wait for open transactions is asked to.
    can_wait = offered(name)["OffsetFetch"][1] >= 7
    assert all(item.require_stable == can_wait for item in fake.asked("OffsetFetch"))
