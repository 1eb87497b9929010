"""Batch reads: the same rows as Spark's own connector, and what is refused."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from pyspark.errors import AnalysisException, PythonException

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.devbroker import DevBroker
from tests.spark.rival import assert_same_rows, load, rows
from tests.spark.streaming import numbered, put
from tests.topics import make_topic

pytestmark = pytest.mark.spark

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def orders(broker, new_topic):
    """A topic of 3 partitions: keys, null keys, tombstones, headers, empty texts."""
    topic = new_topic(partitions=3)
    lines = [f"h{n}:a,h{n}:b\tkey-{n}\tvalue {n} ümläut" for n in range(200)]
    lines += ["NULL\tNULL\tno key", "NULL\tgone\tNULL", "x:\t\t", "NULL\tNULL\tNULL"]
    broker.produce(
        topic,
        lines,
        key_separator="\t",
        reader={"parse.headers": "true", "null.marker": "NULL"},
    )
    return topic


@pytest.mark.parametrize("codec", CODECS)
def test_rows_equal_sparks_own_in_each_codec(spark, broker, new_topic, codec):
    topic = new_topic(partitions=2)
    broker.produce(
        topic,
        [f"key-{n % 7}:value {n} {'x' * (n % 50)}" for n in range(500)],
        key_separator=":",
        properties={"compression.type": codec, "linger.ms": "50"},
    )
    assert len(assert_same_rows(spark, broker.bootstrap_servers, subscribe=topic)) == 500


@pytest.mark.parametrize("include", ["true", "false"])
def test_rows_equal_sparks_own_with_headers_nulls_and_tombstones(spark, broker, orders, include):
    found = assert_same_rows(
        spark, broker.bootstrap_servers, subscribe=orders, includeHeaders=include
    )
    assert len(found) == 204
    assert {row.key for row in found} >= {None, b"", b"gone"}
    assert {row.value for row in found} >= {None, b"", b"no key"}


def test_log_append_time_is_told_apart(spark, broker, new_topic):
    topic = new_topic(configs={"message.timestamp.type": "LogAppendTime"})
    broker.produce(topic, ["a", "b"])
    assert {
        row.timestampType
        for row in assert_same_rows(spark, broker.bootstrap_servers, subscribe=topic)
    } == {1}


def test_offsets_by_json_mean_the_same(spark, broker, orders):
    starts = json.dumps({orders: {"0": 5, "1": -2, "2": 7}})
    ends = json.dumps({orders: {"0": 9, "1": 3, "2": -1}})
    found = assert_same_rows(
        spark,
        broker.bootstrap_servers,
        subscribe=orders,
        startingOffsets=starts,
        endingOffsets=ends,
    )
    assert [row.offset for row in found if row.partition == 0] == [5, 6, 7, 8]


def test_assign_and_pattern_choose_the_same_partitions(spark, broker, orders):
    assert_same_rows(spark, broker.bootstrap_servers, assign=json.dumps({orders: [0, 2]}))
    assert_same_rows(spark, broker.bootstrap_servers, subscribePattern=f"{orders[:-1]}.")


def test_one_input_partition_per_topic_partition(spark, broker, orders):
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=orders)
    assert frame.rdd.getNumPartitions() == 3


def test_max_partitions_groups_them_and_loses_nothing(spark, broker, orders):
    options = {"subscribe": orders, "includeHeaders": "true"}
    all_rows = rows(load(spark, "kafkaproto", broker.bootstrap_servers, **options))
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, maxPartitions=2, **options)
    assert frame.rdd.getNumPartitions() == 2
    assert rows(frame) == all_rows


def test_bounds_are_found_again_at_each_action(spark, broker, new_topic):
    topic = new_topic()
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=topic)
    assert frame.count() == 0
    broker.produce(topic, ["a", "b", "c"])
    assert frame.count() == 3


@pytest.fixture
def with_files(broker, tmp_path):
    """A broker whose files can be changed: that of all tests, or one of its own."""
    with ExitStack() as held:
        yield broker if isinstance(broker, DevBroker) else held.enter_context(DevBroker(tmp_path))


def test_a_damaged_batch_is_an_error_left_out_or_kept_aside(spark, with_files, new_name):
    topic, servers = new_name(), with_files.bootstrap_servers
    make_topic(servers, topic)
    for first in (0, 10, 20):
        put(servers, topic, 0, numbered(first, first + 10))
    (log,) = with_files._folder.rglob(f"{topic}-0/*.log")
    with log.open("r+b") as file:
        file.seek(log.read_bytes().index(b"000015"))
        file.write(b"9")
    sound = [*range(10), *range(20, 30)]

    def found(**options):
        return load(spark, "kafkaproto", servers, subscribe=topic, **options).collect()

    with pytest.raises(PythonException, match=f"{topic}-0.*record batch at offset 10"):
        found()
    assert [row.offset for row in found(mode="DROPMALFORMED")] == sound
    aside = found(mode="PERMISSIVE", columnNameOfCorruptRecord="damaged")
    assert [row.offset for row in aside if row.damaged is None] == sound
    (damaged,) = [row for row in aside if row.damaged is not None]
    assert (damaged.topic, damaged.partition, damaged.value) == (topic, 0, None)
    assert "CRC" in damaged.damaged.reason
    assert b"900015" in damaged.damaged.data


def test_an_empty_topic_has_no_rows(spark, broker, new_topic):
    assert assert_same_rows(spark, broker.bootstrap_servers, subscribe=new_topic()) == []


def test_a_pattern_that_matches_nothing_has_no_rows(spark, broker):
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, subscribePattern="^no-such-topic$")
    assert frame.count() == 0


def test_columns_can_be_chosen_in_any_order_and_as_text(spark, broker, orders):
    reader = (
        spark.read.format("kafkaproto")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", orders)
    )
    by_schema = reader.schema("offset bigint, value string, partition int").load()
    by_option = reader.option("columns", "offset, value string, partition").load()
    assert by_schema.columns == by_option.columns == ["offset", "value", "partition"]
    assert by_schema.where("value is not null").count() == 202
    assert sorted(by_schema.collect(), key=str) == sorted(by_option.collect(), key=str)


def test_a_filter_does_not_leak_into_another_use_of_the_frame(spark, broker, orders):
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=orders)
    assert frame.where("partition = 0").count() < frame.count() == 204


def test_a_view_reads_the_same(spark, broker, orders):
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW orders USING kafkaproto OPTIONS ("
        f"'kafka.bootstrap.servers' '{broker.bootstrap_servers}', subscribe '{orders}')"
    )
    assert spark.sql("SELECT count(*) AS n FROM orders").head().n == 204


def test_a_misspelt_topic_is_named_and_not_created(spark, broker):
    with pytest.raises(AnalysisException, match=r"no-such-topic.*UNKNOWN_TOPIC_OR_PARTITION"):
        load(spark, "kafkaproto", broker.bootstrap_servers, subscribe="no-such-topic").count()
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        assert "no-such-topic" not in cluster.describe().topics


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscribe": "a", "failOnDataLoss": "maybe"}, "failOnDataLoss.*maybe.*true or false"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "startingOffsets.*cannot start at"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "endingOffsets.*cannot end at"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": "[1]"}, "startingOffsets.*expected JSON"),
        ({"subscribe": "a", "assign": "{}"}, "exactly one of them"),
        ({}, "exactly one of them"),
        ({"subscribe": " , "}, "subscribe.*names of topics"),
        ({"subscribePattern": "("}, "subscribePattern.*regular expression"),
        ({"subscribe": "a", "maxPartitions": "0"}, "maxPartitions.*'0'.*1 or more"),
        ({"subscribe": "a", "minPartitions": "none"}, "minPartitions.*none.*1 or more"),
        ({"subscribe": "a", "kafka_isolation.level": "serial"}, "kafka.isolation.level.*serial"),
        ({"subscribe": "a", "columns": "valu"}, "columns.*valu.*'value'"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_what_is_allowed(spark, broker, options, text):
    with pytest.raises(AnalysisException, match=text):
        load(spark, "kafkaproto", broker.bootstrap_servers, **options).count()


def test_a_start_beyond_the_end_is_named(spark, broker, new_topic):
    topic = new_topic()
    broker.produce(topic, ["a"])
    far = json.dumps({topic: {"0": 99}})
    with pytest.raises(AnalysisException, match=rf"startingOffsets.*{topic}-0.*99.*0 to 1"):
        load(
            spark,
            "kafkaproto",
            broker.bootstrap_servers,
            subscribe=topic,
            startingOffsets=far,
        ).count()


def test_an_unreachable_broker_is_named_within_the_deadline(spark):
    with pytest.raises(AnalysisException, match=r"127\.0\.0\.1:1.*refused"):
        load(
            spark,
            "kafkaproto",
            "127.0.0.1:1",
            subscribe="a",
            **{"kafka_socket.connection.setup.timeout.ms": 1500},
        ).count()


def test_offsets_for_other_partitions_are_refused(spark, broker, orders):
    partial = json.dumps({orders: {"0": 1}})
    with pytest.raises(AnalysisException, match="all partitions that are read must be named"):
        load(
            spark,
            "kafkaproto",
            broker.bootstrap_servers,
            subscribe=orders,
            startingOffsets=partial,
        ).count()


def test_a_batch_over_the_limit_is_named(spark, broker, orders):
    with pytest.raises(PythonException, match=f"{orders}.*limit"):
        load(
            spark, "kafkaproto", broker.bootstrap_servers, subscribe=orders, maxBatchBytes=10
        ).count()
