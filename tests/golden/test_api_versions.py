"""What other brokers offer, recorded with its origin, negotiated by our own connection.

api_versions.json holds what was found and nothing more: where a record is a part, the rest is left
out; null is an API that the broker named as unsupported.
"""

import json
from contextlib import closing
from pathlib import Path

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import UnsupportedVersion
from pyspark_kafkaproto.messages import find_api, request_class
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from tests.fake_broker import VERSIONS, FakeCluster

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


@pytest.mark.parametrize(
    "name", [name for name in BROKERS if offered(name).get("FindCoordinator", (0, 9))[1] < 4]
)
def test_a_broker_too_old_for_a_question_is_named_with_its_versions(name, fake):
    least, most = offered(name)["FindCoordinator"]
    with KafkaCluster({"bootstrap.servers": fake.bootstrap_servers}) as cluster:
        said = f"speaks FindCoordinator {least} to {most}.*coordinator_keys"
        with pytest.raises(UnsupportedVersion, match=said):
            cluster.get_consumer_offsets("readers", ORDERS)
