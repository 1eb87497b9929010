"""The embedded broker with a real Kafka in it: a start, a kill, data that stays, both versions."""

import pytest

from pyspark_kafkaproto.devbroker import DEFAULT_VERSION, DevBroker, find_running
from pyspark_kafkaproto.devbroker.running import ClusterFile
from pyspark_kafkaproto.errors import DevBrokerFailed

pytestmark = pytest.mark.broker

OFFSETS = "org.apache.kafka.tools.GetOffsetShell"


def _end_offsets(broker, topic):
    shown = broker.run_tool(
        OFFSETS, "--bootstrap-server", broker.bootstrap_servers, "--topic", topic
    )
    return sorted(shown.split())


@pytest.mark.parametrize("version", ["3.9.1", DEFAULT_VERSION])
def test_records_and_cluster_id_survive_a_kill_and_a_new_start(tmp_path, monkeypatch, version):
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    folder = tmp_path / "jürgen's data"
    with DevBroker(folder, version=version) as first:
        zstd = {"compression.type": "zstd"}
        first.produce("orders", ["a|1", "b|2", "a|3"], key_separator="|", properties=zstd)
        cluster_id = ClusterFile.read(folder).cluster_id
        first.kill()
        assert find_running(folder) is None
        first.restart()
        assert first.is_running
    with DevBroker(folder, version=version) as second:
        assert _end_offsets(second, "orders") == ["orders:0:3"]
        assert ClusterFile.read(folder).cluster_id == cluster_id
    assert (folder / "node-1" / "data" / "orders-0").is_dir()


def test_a_setting_that_kafka_refuses_shows_kafkas_own_words():
    with pytest.raises(DevBrokerFailed, match=r"num\.network\.threads: Not a number of type INT"):
        DevBroker(properties={"num.network.threads": "many"}).start()


def test_three_nodes_replicate_and_go_on_without_one():
    with DevBroker(nodes=3) as cluster:
        cluster.create_topic("orders", 3, replication_factor=3)
        cluster.kill(2)
        cluster.produce("orders", [f"value {n}" for n in range(30)])
        counts = [int(line.rpartition(":")[2]) for line in _end_offsets(cluster, "orders")]
        assert sum(counts) == 30


def test_the_perf_producer_fills_a_topic(broker, new_topic):
    topic = new_topic(4)
    report = broker.produce_perf(topic, 5_000, 100, compression="lz4")
    assert report.startswith("5000 records sent")
    counts = [int(line.rpartition(":")[2]) for line in _end_offsets(broker, topic)]
    assert len(counts) == 4
    assert sum(counts) == 5_000


def test_a_line_that_the_broker_refuses_is_an_error(broker, new_topic):
    """The tool hears of it while it ends, and ends well all the same."""
    topic = new_topic(1, configs={"max.message.bytes": "100"})
    with pytest.raises(DevBrokerFailed, match="RecordTooLargeException"):
        broker.produce(topic, ["long" * 100])
