"""Writes: what our sink writes both connectors read back alike, and what is refused."""

from __future__ import annotations

import datetime as dt
import re
import stat

import pytest
from click.testing import CliRunner
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.cli.root import kafkaproto
from tests.spark.rival import assert_same_rows, condition_of, load, rows

pytestmark = pytest.mark.spark

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
UTC = dt.UTC

RICH = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField("when", TimestampType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            ),
        ),
    ]
)
NOON = dt.datetime(2024, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)
RICH_ROWS = [
    (b"k1", b"v1", 0, NOON, [("h", b"1"), ("h", b"2"), ("e", b""), ("n", None)]),
    (None, b"no key", 1, NOON + dt.timedelta(days=40), None),
    (b"gone", None, 0, NOON - dt.timedelta(days=9000), []),
    (b"", b"", 2, dt.datetime(1970, 1, 1, tzinfo=UTC), [("ü", b"\xff")]),
    (b"k1", "ümläut".encode(), 0, NOON, None),
]


def write(frame, servers, **options):
    """Writes `frame`; options as keywords, `kafka_` for `kafka.`."""
    writer = frame.write.format("kafkaproto").option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        writer = writer.option(name.replace("kafka_", "kafka."), str(value))
    writer.mode("append").save()


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_back_alike_by_both_connectors(spark, broker, new_topic, codec):
    topic = new_topic(partitions=3)
    frame = spark.range(3000).select(
        fn.concat(fn.lit("key-"), fn.col("id") % 17).alias("key"),
        fn.concat(
            fn.lit("value "), fn.col("id"), fn.repeat(fn.lit("x"), (fn.col("id") % 50).cast("int"))
        ).alias("value"),
    )
    write(frame, broker.bootstrap_servers, topic=topic, **{"kafka_compression.type": codec})
    found = assert_same_rows(spark, broker.bootstrap_servers, subscribe=topic)
    expected = {(row.key.encode(), row.value.encode()) for row in frame.collect()}
    assert len(found) == 3000
    assert {(row.key, row.value) for row in found} == expected


def test_headers_timestamps_nulls_and_given_partitions(spark, broker, new_topic):
    topic = new_topic(partitions=3)
    frame = spark.createDataFrame(RICH_ROWS, RICH).coalesce(1)
    write(frame, broker.bootstrap_servers, topic=topic, timestampColumn="when")
    found = assert_same_rows(spark, broker.bootstrap_servers, subscribe=topic, includeHeaders=True)
    seen = sorted(
        (
            (row.partition, row.offset, row.key, row.value, row.timestamp.replace(tzinfo=UTC),
             [tuple(pair) for pair in row.headers or ()])
            for row in found
        ),
        key=lambda row: row[:2],
    )  # fmt: skip
    k1, no_key, gone, empty, last = RICH_ROWS
    assert seen == [
        (0, 0, b"k1", b"v1", k1[3], k1[4]),
        (0, 1, b"gone", None, gone[3], []),
        (0, 2, b"k1", last[1], NOON, []),
        (1, 0, None, b"no key", no_key[3], []),
        (2, 0, b"", b"", empty[3], empty[4]),
    ]


def test_keys_go_where_sparks_own_sink_puts_them(spark, broker, new_topic):
    ours, theirs = new_topic(partitions=7), new_topic(partitions=7)
    frame = spark.range(500).selectExpr("cast(id as string) as key", "'v' as value")
    write(frame, broker.bootstrap_servers, topic=ours)
    (
        frame.write.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", theirs)
        .mode("append")
        .save()
    )
    places = [
        {(row.key, row.partition) for row in rows(load(spark, "kafka", broker.bootstrap_servers,
                                                       subscribe=topic))}
        for topic in (ours, theirs)
    ]  # fmt: skip
    assert places[0] == places[1]
    assert len(places[0]) == 500


def test_a_topic_per_row_and_the_option_that_wins(spark, broker, new_topic):
    first, second, third = new_topic(), new_topic(), new_topic()
    frame = spark.range(100).select(
        fn.col("id").cast("string").alias("value"),
        fn.when(fn.col("id") % 2 == 0, first).otherwise(second).alias("topic"),
    )
    write(frame, broker.bootstrap_servers)
    write(frame, broker.bootstrap_servers, topic=third)
    found = {
        topic: sorted(int(row.value) for row in rows(load(
            spark, "kafkaproto", broker.bootstrap_servers, subscribe=topic)))
        for topic in (first, second, third)
    }  # fmt: skip
    assert found == {
        first: list(range(0, 100, 2)),
        second: list(range(1, 100, 2)),
        third: list(range(100)),
    }


def test_a_frame_that_was_read_is_written_with_the_time_of_now(spark, broker, new_topic):
    source, target = new_topic(), new_topic()
    broker.produce(source, [f"{n}" for n in range(10)])
    before = dt.datetime.now(UTC).replace(microsecond=0)
    write(
        load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=source),
        broker.bootstrap_servers,
        topic=target,
    )
    found = assert_same_rows(spark, broker.bootstrap_servers, subscribe=target)
    assert [row.value for row in found] == [f"{n}".encode() for n in range(10)]
    assert all(row.timestamp.replace(tzinfo=UTC) >= before for row in found)


def test_what_is_said_is_captured_by_the_sink_and_by_the_source(spark, broker, new_topic, tmp_path):
    topic, servers = new_topic(), broker.bootstrap_servers
    sink, source = tmp_path / "sink", tmp_path / "source"
    write(spark.createDataFrame([("one",)], "value string"), servers, topic=topic, captureTo=sink)
    assert len(rows(load(spark, "kafkaproto", servers, subscribe=topic, captureTo=source))) == 1
    for folder, api in ((sink, "Produce"), (source, "Fetch")):
        files = sorted(folder.iterdir())
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        listed = [CliRunner().invoke(kafkaproto, ["dissect", str(file)]) for file in files]
        assert {done.exit_code for done in listed} == {0}
        assert any(re.search(rf"\b{api}\b.*{topic}", done.stdout) for done in listed)


def test_a_stream_writes_every_row_of_every_batch(spark, broker, new_topic, tmp_path):
    source, target = new_topic(partitions=2), new_topic(partitions=2)
    broker.produce(source, [f"k{n}:{n}" for n in range(100)], key_separator=":")

    def run():
        query = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("kafkaproto")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run()
    broker.produce(source, [f"k{n}:{n}" for n in range(100, 150)], key_separator=":")
    run()
    found = assert_same_rows(spark, broker.bootstrap_servers, subscribe=target)
    assert sorted(int(row.value) for row in found) == list(range(150))


def test_the_end_of_a_micro_batch_asks_no_broker(spark, broker, new_topic, tmp_path):
    """Of the processes that Spark has for it only who plans and who writes say something."""
    source, target = new_topic(), new_topic()
    write(spark.sql("SELECT 'v' AS value"), broker.bootstrap_servers, topic=source)
    to = {"topic": target, "captureTo": str(tmp_path / "captured")}
    reader = spark.readStream.format("kafka").option("subscribe", source)
    reader = reader.option("startingOffsets", "earliest")
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer = reader.load().select("value").writeStream.format("kafkaproto").options(**to)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert load(spark, "kafka", broker.bootstrap_servers, subscribe=target).count() == 1
    assert len(list((tmp_path / "captured").iterdir())) == 2


def test_what_can_never_be_written_goes_to_the_dead_letter_topic(spark, broker, new_topic):
    topic, letters = new_topic(configs={"max.message.bytes": "20000"}), new_topic()
    frame = spark.range(200).select(
        fn.when(fn.col("id") == 7, fn.repeat(fn.lit("x"), 50_000))
        .otherwise(fn.col("id").cast("string")).alias("value"),
        fn.when(fn.col("id") == 9, 5).otherwise(0).alias("partition"),
    ).coalesce(1)  # fmt: skip
    put_aside = {"onInvalidRecord": "deadletter", "deadLetterTopic": letters}
    write(frame, broker.bootstrap_servers, topic=topic, **put_aside)
    written = rows(load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=topic))
    assert [int(row.value) for row in written] == [n for n in range(200) if n not in (7, 9)]
    found = rows(
        load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=letters, includeHeaders=True)
    )
    reasons = {bytes(row.value): dict(map(tuple, row.headers)) for row in found}
    assert set(reasons) == {b"x" * 50_000, b"9"}
    assert reasons[b"9"]["kafkaproto.reason"].startswith(b"there is no partition 5")
    assert reasons[b"x" * 50_000]["kafkaproto.reason"].startswith(b"MESSAGE_TOO_LARGE")
    assert reasons[b"9"]["kafkaproto.topic"] == topic.encode()
    with pytest.raises(PythonException, match=rf"MESSAGE_TOO_LARGE|{topic}.*no partition 5"):
        write(frame, broker.bootstrap_servers, topic=topic)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("'v' as value", {}, r"required when no \\?'topic\\?' attribute is present"),
        ("'v' as key", {"topic": "t"}, r"required attribute \\?'value\\?' not found"),
        ("1 as value", {"topic": "t"}, "value int.*value must be string or binary"),
        ("'v' as value, 1L as partition", {"topic": "t"}, "partition must be int"),
        ("'v' as value, 'x' as headers", {"topic": "t"}, "headers must be array<struct<"),
        ("'v' as value, 5 as topic", {}, "topic must be string"),
        (
            "'v' as value",
            {"topic": "t", "timestampColumn": "ts"},
            "timestampColumn.*no such column",
        ),
        ("'v' as value", {"topic": "t", "onInvalidRecord": "skip"}, "expected fail or deadletter"),
        ("'v' as value", {"topic": "t", "kafka_acks": "2"}, "kafka.acks.*expected all"),
        (
            "'v' as value",
            {"topic": "t", "kafka_acks": "1", "kafka_enable.idempotence": "true"},
            "kafka.acks.*with enable.idempotence=true expected all",
        ),
        ("'v' as value", {"topic": "no-such-topic"}, "no-such-topic.*UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_row_is(spark, broker, columns, options, text):
    with pytest.raises(AnalysisException, match=text):
        write(spark.sql(f"SELECT {columns}"), broker.bootstrap_servers, **options)


def test_a_row_without_a_topic_fails_with_sparks_condition(spark, broker):
    frame = spark.sql("SELECT CAST(null AS string) AS topic, 'v' AS value")
    theirs = frame.write.format("kafka").mode("append")
    with pytest.raises(Exception, match="null topic") as caught:
        theirs.option("kafka.bootstrap.servers", broker.bootstrap_servers).save()
    with pytest.raises(PythonException, match=condition_of(caught.value)):
        write(frame, broker.bootstrap_servers)
    assert condition_of(caught.value) == "KAFKA_NULL_TOPIC_IN_DATA"


def test_a_topic_is_neither_overwritten_nor_created(spark, broker, new_topic):
    topic = new_topic()
    frame = spark.range(1).selectExpr("'v' as value").write.format("kafkaproto")
    frame = frame.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(AnalysisException, match="cannot be overwritten: use append"):
        frame.option("topic", topic).mode("overwrite").save()
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        assert "no-such-topic" not in cluster.describe().topics


def test_a_table_of_a_catalog_is_written_with_options_of_the_statement(spark, broker, new_topic):
    topic = new_topic()
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic}
    spark.sql("create table written (value string) using kafkaproto")
    try:
        with pytest.raises(AnalysisException, match=r"say INSERT INTO t WITH \(…\), or writeTo"):
            spark.sql("insert into written values ('lost')")
        given = ", ".join(f"'{name}'='{value}'" for name, value in options.items())
        spark.sql(f"insert into written with ({given}) values ('by SQL')")
        spark.sql("select 'by writeTo' value").writeTo("written").options(**options).append()
    finally:
        spark.sql("drop table written")
    read = load(spark, "kafka", broker.bootstrap_servers, subscribe=topic)
    assert [row.value for row in rows(read)] == [b"by SQL", b"by writeTo"]
