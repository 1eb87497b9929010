"""Exactly-once writes by Spark itself: a task that is tried again, a batch that is repeated."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as fn

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.client.batch_commit import open_transactions
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.net import ClientConfig
from tests.settled import wait_until_settled
from tests.spark.rival import load, rows
from tests.waiting import until

pytestmark = pytest.mark.spark


@pytest.fixture
def options(broker, new_topic):
    """Of an exactly-once write to a topic of its own."""
    topic = new_topic(partitions=2)
    return {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "topic": topic,
        "transactionalIdPrefix": topic,
        "decisionTopic": f"{topic}-decisions",
    }


def seen(spark, options, **more):
    """How often each value is seen by a read_committed reader of either connector."""
    servers, topic = options["kafka.bootstrap.servers"], options["topic"]
    wait_until_settled(servers, {TopicPartition(topic, number) for number in range(2)})
    more = {"kafka.isolation.level": "read_committed"} | more
    found = [
        Counter(
            int(row.value) for row in rows(load(spark, source, servers, subscribe=topic, **more))
        )
        for source in ("kafkaproto", "kafka")
    ]
    assert found[0] == found[1]
    return found[0]


def test_a_batch_job_is_seen_whole_or_not_at_all(spark, options):
    frame = spark.range(0, 3000, 1, 3).select(fn.col("id").cast("string").alias("value"))
    frame.write.format("kafkaproto").options(**options).mode("append").save()
    assert seen(spark, options) == Counter(range(3000))
    failing = frame.select(
        fn.when(fn.col("value") == 2999, fn.raise_error(fn.lit("in the last task")))
        .otherwise(fn.col("value")).alias("value")
    )  # fmt: skip
    with pytest.raises(Exception, match="in the last task"):
        failing.write.format("kafkaproto").options(**options).mode("append").save()
    assert seen(spark, options) == Counter(range(3000))
    everything = seen(spark, options, **{"kafka.isolation.level": "read_uncommitted"})
    assert sum(everything.values()) > 3000  # it had written, and was aborted: nothing is open


def write_what_is_there(rows, options, checkpoint):
    query = (
        rows.writeStream.format("kafkaproto")
        .options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def forget_commit(checkpoint, batch):
    """As after a crash between our commit and Spark's own."""
    for name in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def test_a_stream_repeats_a_batch_that_spark_did_not_note(spark, options, tmp_path):
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()

    def run():
        write_what_is_there(spark.readStream.text(str(source)).repartition(2), options, checkpoint)

    for number in range(3):
        lines = range(100 * number, 100 * (number + 1))
        (source / f"{number}.txt").write_text("\n".join(map(str, lines)))
        run()
        if number == 0:
            shutil.copytree(checkpoint, tmp_path / "older")
    assert seen(spark, options) == Counter(range(300))
    forget_commit(checkpoint, 2)
    run()
    assert seen(spark, options) == Counter(range(300))
    # A checkpoint from before the last batch would write that again.
    shutil.rmtree(checkpoint)
    (tmp_path / "older").rename(checkpoint)
    with pytest.raises(Exception, match="its checkpoint is older than what it has written"):
        run()
    assert seen(spark, options) == Counter(range(300))


def test_a_decided_batch_that_is_repeated_leaves_stateful_queries_as_they_were(
    spark, options, tmp_path
):
    """Spark notes state where rows are read to the end; of format 2 it misses what was not."""
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    conf = {
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution."
        "streaming.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    }

    def run():
        # More than what stands in buffers between Spark and Python.
        rows = spark.readStream.text(str(source)).select(
            "value", fn.rpad("value", 1000, "x").alias("key")
        )
        write_what_is_there(rows.dropDuplicates(["key"]), options, checkpoint)

    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        (source / "0.txt").write_text("\n".join(map(str, range(20_000))))
        run()
        forget_commit(checkpoint, 0)
        (source / "1.txt").write_text("\n".join(map(str, range(10_000, 20_010))))
        run()
    finally:
        for name in conf:
            spark.conf.unset(name)
    assert seen(spark, options) == Counter(range(20_010))


def test_a_stream_that_is_stopped_leaves_nothing_open(spark, options, tmp_path, new_name):
    """Before any of its tasks has ended: their workers are killed, and only the driver is left."""
    log = DecisionLog(
        ClientConfig.parse({"bootstrap.servers": options["kafka.bootstrap.servers"]}),
        options["decisionTopic"],
        options["transactionalIdPrefix"],
    )

    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "lines.txt").write_text("\n".join(map(str, range(30_000))))
    stalls = fn.expr("java_method('java.lang.Thread', 'sleep', 600000L)")
    query = (
        spark.readStream.text(str(tmp_path / "source"))
        .select(
            fn.when(fn.col("value") == 25_000, stalls).otherwise(fn.col("value")).alias("value")
        )
        .writeStream.format("kafkaproto")
        .options(**options | {"kafka.linger.ms": "0", "kafka.batch.size": "100"})
        .option("checkpointLocation", f"file:{tmp_path}/checkpoint")
        .start()
    )
    try:
        until(lambda: open_transactions(log), within_s=60, pause_s=0.1)
    finally:
        query.stop()
    until(lambda: not open_transactions(log), within_s=60, pause_s=0.1)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"kafka.acks": "1"}, "transactionalIdPrefix.*need idempotence"),
        ({"kafka.transactional.id": "mine"}, "set the source option transactionalIdPrefix"),
    ],
)
def test_what_cannot_be_is_refused(spark, options, more, text):
    writer = spark.range(1).selectExpr("'v' as value").write.format("kafkaproto")
    with pytest.raises(AnalysisException, match=text):
        writer.options(**options | more).mode("append").save()
