"""Each difference from Spark's own connector that docs/migrating.md names, shown on both."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import StringType

from pyspark_kafkaproto import KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.records import NewRecord
from tests.spark.rival import condition_of, load
from tests.spark.streaming import OURS, THEIRS, Place, failure_of, numbered, put, wait_until
from tests.spark.writing import produce
from tests.topics import make_topic

pytestmark = pytest.mark.spark

FIRST_MS = 1_700_000_000_000
# What Spark's own connector repeats three times, or waits two minutes for.
SOON = {
    "fetchOffset.numRetries": 1,
    "fetchOffset.retryIntervalMs": 10,
    "kafkaConsumer.pollTimeoutMs": 1000,
}


@pytest.fixture(scope="module")
def events(broker, new_topic):
    """30 records a second apart in partition 0, none in partition 1."""
    topic = new_topic(partitions=2)
    records = [NewRecord(b"value", b"key", FIRST_MS + 1000 * at) for at in range(30)]
    produce(broker.bootstrap_servers, topic, 0, records)
    return topic


@pytest.fixture(scope="module")
def both(spark, broker, events):
    """Two batch reads of partition 0, Spark's own and ours, with the same options."""

    def reads(**options):
        given = {"assign": json.dumps({events: [0]})} | SOON | options
        return [
            load(spark, source, broker.bootstrap_servers, **given)
            for source in ("kafka", "kafkaproto")
        ]

    return reads


def refused(frame):
    """The text of the error that counting `frame` ends with, and Spark's condition."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of every kind, from the JVM
        frame.count()
    return f"{caught.value} {condition_of(caught.value)}"


def test_what_is_not_open_is_resolved_once_per_load(spark, broker, new_topic):
    topic = new_topic()
    produce(broker.bootstrap_servers, topic, 0, [NewRecord(b"old", None, FIRST_MS)])
    options = {"startingTimestamp": 2**60, "startingOffsetsByTimestampStrategy": "latest"}
    theirs, ours = (
        load(spark, source, broker.bootstrap_servers, subscribe=topic, **options)
        for source in ("kafka", "kafkaproto")
    )
    assert (theirs.count(), ours.count()) == (0, 0)
    produce(broker.bootstrap_servers, topic, 0, [NewRecord(b"new", None, FIRST_MS)])
    assert (theirs.count(), ours.count()) == (0, 1)


def test_negative_timestamps_are_refused(both):
    theirs, ours = both(startingTimestamp=-2)
    assert theirs.count() == 30
    assert "startingTimestamp' is '-2'" in refused(ours)


def test_a_partition_that_is_not_there_fails_the_query(both, events):
    theirs, ours = both(assign=json.dumps({events: [0, 7]}))
    assert theirs.count() == 30
    assert f"{events}-7: UNKNOWN_TOPIC_OR_PARTITION" in refused(ours)


def test_an_end_beyond_the_log_fails_at_once_or_is_cut(both, events):
    beyond = json.dumps({events: {"0": 99}})
    theirs, ours = both(endingOffsets=beyond)
    assert "KAFKA_DATA_LOSS" in refused(theirs)
    assert "endingOffsets" in refused(ours)
    theirs, ours = both(endingOffsets=beyond, failOnDataLoss="false")
    assert theirs.count() == ours.count() == 30


def test_an_end_behind_an_open_transaction_is_no_loss(spark, broker, new_topic, new_name):
    topic = new_topic()
    options = {"kafka.isolation.level": "read_committed", "failOnDataLoss": "false"}
    options |= {"assign": json.dumps({topic: [0]}), "endingOffsets": json.dumps({topic: {"0": 1}})}
    name = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": new_name()}
    with Producer(name) as producer:
        producer.begin_transaction()
        producer.send([ProducerRecord(b"value", topic=topic, partition=0)])
        producer.flush()
        theirs, ours = (
            load(spark, source, broker.bootstrap_servers, **SOON | options)
            for source in ("kafka", "kafkaproto")
        )
        assert theirs.count() == 0
        said = refused(ours)
        assert "a transaction is open since offset 0" in said
        assert "KAFKA_DATA_LOSS" not in said
        producer.commit_transaction()
    assert ours.count() == 1


def test_a_start_beyond_the_log_reads_nothing_where_loss_is_borne(both, events):
    beyond = json.dumps({events: {"0": 99}})
    theirs, ours = both(startingOffsets=beyond, failOnDataLoss="false")
    assert "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET" in refused(theirs)
    assert ours.count() == 0


def test_records_per_partition_hold_by_themselves(both):
    theirs, ours = both(maxRecordsPerPartition=10)
    assert [frame.rdd.getNumPartitions() for frame in (theirs, ours)] == [1, 3]


def test_partitions_without_records_keep_an_input_partition(spark, broker, events):
    counts = [
        load(
            spark, source, broker.bootstrap_servers, subscribe=events, minPartitions=3
        ).rdd.getNumPartitions()
        for source in ("kafka", "kafkaproto")
    ]
    assert counts == [3, 4]


def test_topics_of_kafkas_own_are_read_where_they_are_named(spark, broker, events, new_name):
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as kafka:
        kafka.set_consumer_offsets(new_name(), {TopicPartition(events, 0): 1})
    theirs, ours = (
        load(spark, source, broker.bootstrap_servers, subscribe="__consumer_offsets")
        for source in ("kafka", "kafkaproto")
    )
    assert theirs.count() == 0
    assert ours.count() > 0


def test_a_least_number_of_offsets_leaves_no_rest_under_available_now(
    spark, broker, events, tmp_path
):
    least = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 20, "maxOffsetsPerTrigger": 20}
    counts = []
    for source in ("kafka", "kafkaproto"):
        place = Place(spark, broker.bootstrap_servers, tmp_path / source)
        place.run(source, subscribe=events, **least)
        counts.append(len(place.rows()))
    assert counts == [20, 30]


def test_the_offsets_of_a_limited_batch_are_shared_out_without_fractions(
    spark, broker, new_topic, tmp_path
):
    topic = new_topic(partitions=2)
    for partition, count in enumerate((58, 42)):
        records = [NewRecord(b"value", None, FIRST_MS)] * count
        produce(broker.bootstrap_servers, topic, partition, records)
    limited = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 50}
    firsts = []
    for source in ("kafka", "kafkaproto"):
        place = Place(spark, broker.bootstrap_servers, tmp_path / source)
        done = [item for item in place.run(source, subscribe=topic, **limited) if item.numInputRows]
        firsts.append(done[0].numInputRows)
        assert len(place.rows()) == 100
    assert firsts == [49, 50]


def test_a_loss_that_failed_a_stream_is_logged_by_sparks_own_alone(
    spark, broker, new_topic, tmp_path
):
    """Whoever starts it again by rote learns of a topic made anew once, and not each time."""
    topic = new_topic()
    put(broker.bootstrap_servers, topic, 0, numbered(0, 3))
    both = {
        source: Place(spark, broker.bootstrap_servers, tmp_path / source)
        for source in (OURS, THEIRS)
    }
    given = {"subscribe": topic, "startingOffsets": "earliest"} | SOON
    for source, place in both.items():
        place.run(source, **given)
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as kafka:
        kafka.delete_topics({topic})
        wait_until("the topic is gone", lambda: not kafka.describe({topic}).has(topic))
    make_topic(broker.bootstrap_servers, topic)
    put(broker.bootstrap_servers, topic, 0, numbered(10, 11))
    for source, place in both.items():
        assert "from 3 to 1" in failure_of(place.start(source, **given))
    put(broker.bootstrap_servers, topic, 0, numbered(11, 15))
    assert "from 3 to 1" in failure_of(both[THEIRS].start(THEIRS, **given))
    both[OURS].run(OURS, **given)
    assert both[OURS].values() == numbered(0, 3) + numbered(13, 15)


def test_a_topic_that_is_named_and_not_there_is_left_out_of_a_stream_where_loss_is_borne(
    spark, broker, new_topic, new_name, tmp_path
):
    """The options of a query that goes on were changed: the name may be misspelt."""
    topic, other = new_topic(), new_name()
    given = {"subscribe": f"{topic},{other}"} | SOON
    both = {
        source: Place(spark, broker.bootstrap_servers, tmp_path / source)
        for source in (OURS, THEIRS)
    }
    for source, place in both.items():
        place.run(source, subscribe=topic)
    put(broker.bootstrap_servers, topic, 0, numbered(0, 3))
    assert f"topic '{other}': UNKNOWN_TOPIC_OR_PARTITION" in failure_of(both[OURS].start(**given))
    for lenient in ({}, {"failOnDataLoss": "false"}):
        failing = both[THEIRS].start(THEIRS, **given, **lenient)
        assert "UnknownTopicOrPartitionException" in failure_of(failing)
    both[OURS].run(**given, failOnDataLoss="false")
    assert both[OURS].values() == numbered(0, 3)


def test_a_logged_batch_keeps_partitions_that_came_with_it_and_are_not_meant_any_more(
    spark, broker, new_topic, tmp_path
):
    old, new = new_topic(), new_topic()
    put(broker.bootstrap_servers, old, 0, numbered(0, 3))
    put(broker.bootstrap_servers, new, 0, numbered(3, 5))
    found = {}
    for source in (OURS, THEIRS):
        place = Place(spark, broker.bootstrap_servers, tmp_path / source)
        place.run(source, subscribe=old, startingOffsets="earliest")
        place.run(source, subscribe=f"{old},{new}")
        place.forget_last_batch()
        assert place.values() == numbered(0, 3)
        place.run(source, subscribe=old, failOnDataLoss="false", **SOON)
        found[source] = place.values()
    assert found == {OURS: numbered(0, 5), THEIRS: numbered(0, 3)}


def test_a_stream_that_has_read_an_open_transaction_waits_for_its_end_under_read_committed(
    spark, broker, new_topic, new_name, tmp_path
):
    topic = new_topic()
    both = {
        source: Place(spark, broker.bootstrap_servers, tmp_path / source)
        for source in (OURS, THEIRS)
    }
    committed = {"subscribe": topic, "kafka_isolation.level": "read_committed"} | SOON
    name = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": new_name()}
    with Producer(name) as producer:
        producer.begin_transaction()
        producer.send([ProducerRecord(b"000000", topic=topic, partition=0)])
        producer.flush()
        for source, place in both.items():
            place.run(source, subscribe=topic, startingOffsets="earliest")
        both[OURS].run(OURS, **committed)
        assert "from 1 to 0" in failure_of(both[THEIRS].start(THEIRS, **committed))
        producer.commit_transaction()
    put(broker.bootstrap_servers, topic, 0, numbered(1, 2))
    both[OURS].run(OURS, **committed)
    assert both[OURS].values() == numbered(0, 2)
    both[THEIRS].run(THEIRS, **committed, failOnDataLoss="false")
    assert both[THEIRS].values() == ["000000", *numbered(0, 2)]


def test_patterns_are_pythons(spark, broker, events):
    theirs, ours = (
        load(spark, source, broker.bootstrap_servers, subscribePattern=rf"^{events}\p{{Lower}}*$")
        for source in ("kafka", "kafkaproto")
    )
    assert theirs.count() == 30
    assert "subscribePattern" in refused(ours)


def test_errors_of_options_are_analysis_exceptions(both):
    theirs, ours = both(startingTimestamp=2**60)
    with pytest.raises(Exception, match="No offset matched") as caught:
        theirs.count()
    assert not isinstance(caught.value, AnalysisException)
    with pytest.raises(AnalysisException, match="startingTimestamp"):
        ours.count()


def test_a_schema_may_be_given(spark, broker, events):
    theirs, ours = (
        spark.read.format(source)
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", events)
        .schema("value string")
        for source in ("kafka", "kafkaproto")
    )
    assert ours.load().schema["value"].dataType == StringType()
    assert {row.value for row in ours.load().collect()} == {"value"}
    with pytest.raises(Exception, match="schema"):
        theirs.load()


def test_a_string_column_takes_utf_8_alone(spark, broker, new_topic):
    topic = new_topic()
    produce(broker.bootstrap_servers, topic, 0, [NewRecord(b"\xff", None, FIRST_MS)])
    reader = (
        spark.read.format("kafkaproto")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic)
    )
    (row,) = reader.load().selectExpr("CAST(value AS STRING)").collect()
    assert row.value == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(Exception, match="UTF"):
        reader.schema("value string").load().collect()


def test_arrow_batches_have_a_limit(spark, both):
    theirs, ours = both()
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    for number in (0, -1):
        spark.conf.set(setting, number)
        try:
            assert theirs.count() == 30
            assert "maximum arrow batch size should be greater than 0" in refused(ours)
        finally:
            spark.conf.unset(setting)
    assert ours.count() == 30


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ('{"TOPIC": {"0": 1.0}}', 1),
        ('{"TOPIC": {"0": 1}} x', 1),
        ('{"TOPIC": {"0": null}}', 0),
    ],
    ids=["fraction", "more behind", "null"],
)
def test_json_is_whole_numbers_and_nothing_behind(both, events, value, start):
    theirs, ours = both(startingOffsets=value.replace("TOPIC", events))
    assert theirs.count() == 30 - start
    assert "startingOffsets" in refused(ours)


@pytest.mark.parametrize("name", ["kafka_fetch.max.bytes", "kafka_max.partition.fetch.bytes"])
def test_a_fetch_has_at_least_a_byte(both, name):
    theirs, ours = both(**{name: 0})
    assert theirs.count() == 30
    assert name.replace("_", ".") in refused(ours)


# Writes


def sink(spark, source, broker, topic, query="select 'x' value"):
    """A write of the rows of `query`, for whoever saves it."""
    to = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic}
    return spark.sql(query).write.format(source).options(**to).mode("append")


def values(spark, broker, topic):
    rows = load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=topic)
    return [bytes(row.value) for row in rows.select("value").orderBy("offset").collect()]


@pytest.mark.parametrize(("source", "is_found"), [("kafka", True), ("kafkaproto", False)])
def test_a_sink_in_python_is_found_in_the_active_session_of_a_thread_alone(
    spark, broker, new_topic, source, is_found
):
    """Where Spark mends that, docs/migrating.md has to say so."""
    topic = new_topic()

    def in_a_thread(work):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    def active():
        session = spark._jvm.org.apache.spark.sql.classic.SparkSession
        session.setActiveSession(spark._jsparkSession)
        sink(spark, source, broker, topic).save()

    if is_found:
        in_a_thread(sink(spark, source, broker, topic).save)
    else:
        with pytest.raises(Exception, match=r"kafkaproto\.DefaultSource"):
            in_a_thread(sink(spark, source, broker, topic).save)
    in_a_thread(active)
    assert values(spark, broker, topic) == [b"x"] * (1 + is_found)


def test_collated_strings_are_written_as_their_bytes(spark, broker, new_topic):
    topic = new_topic()
    query = "select 'x' collate UTF8_LCASE value"
    with pytest.raises(AnalysisException, match="value attribute unsupported type"):
        sink(spark, "kafka", broker, topic, query).save()
    sink(spark, "kafkaproto", broker, topic, query).save()
    assert values(spark, broker, topic) == [b"x"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select 'x' value, 'y' value", "column 'value' is there twice"),
        ("select 'x' value, 1 a, 2 a", "DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT"),
        ("select 'x' value, struct(1 as a, 2 as a) other", "DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT"),
    ],
    ids=["of a record", "another", "within another"],
)
def test_a_column_that_is_there_twice_is_refused(spark, broker, new_topic, query, said):
    topic = new_topic()
    sink(spark, "kafka", broker, topic, query).save()
    with pytest.raises(Exception, match=said):
        sink(spark, "kafkaproto", broker, topic, query).save()
    assert values(spark, broker, topic) == [b"x"]


def test_partition_by_is_refused_by_spark(spark, broker, new_topic):
    """Spark's own connector has no table whose columns it could differ from."""
    topic = new_topic()
    query = "select 'k' key, 'x' value"
    sink(spark, "kafka", broker, topic, query).partitionBy("key").save()
    with pytest.raises(Exception, match="partitioning or clustering columns do not match"):
        sink(spark, "kafkaproto", broker, topic, query).partitionBy("key").save()
    assert values(spark, broker, topic) == [b"x"]


def test_a_column_of_months_and_years_is_refused_by_name(spark, broker, new_topic):
    """A task would get no further than a `KeyError: 21` of pyarrow's."""
    query = "select 'x' value, interval '1' month other"
    for connector, said in [
        ("kafka", "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"),
        ("kafkaproto", "'other interval month'.*leave it out, or cast it to string"),
    ]:
        with pytest.raises(AnalysisException, match=said):
            sink(spark, connector, broker, new_topic(), query).save()


@pytest.mark.parametrize("other", ["parse_json('1')", "interval '1' day"])
def test_a_column_that_sparks_own_does_not_take_is_left_out(spark, broker, new_topic, other):
    topic = new_topic()
    query = f"select 'x' value, {other} other"
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"):
        sink(spark, "kafka", broker, topic, query).save()
    sink(spark, "kafkaproto", broker, topic, query).save()
    assert values(spark, broker, topic) == [b"x"]


def test_what_an_aggregation_has_changed_is_written_from_foreach_batch(
    spark, broker, new_topic, tmp_path
):
    source, target = new_topic(), new_topic()
    stream = spark.readStream.format("kafkaproto").option("startingOffsets", "earliest")
    stream = stream.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = stream.option("subscribe", source).load()
    counts = rows.groupBy("value").count().selectExpr("value key", "string(count) value")
    to = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": target}

    def changes(checkpoint):
        writing = counts.writeStream.outputMode("update").trigger(availableNow=True)
        return writing.option("checkpointLocation", str(tmp_path / checkpoint))

    with pytest.raises(Exception, match="does not support Update mode"):
        changes("sink").format("kafkaproto").options(**to).start().awaitTermination(60)
    each = changes("batches").foreachBatch(
        lambda rows, _: rows.write.format("kafkaproto").options(**to).mode("append").save()
    )
    for text in ("x", "x"):
        sink(spark, "kafkaproto", broker, source, f"select '{text}' value").save()
        query = each.start()
        assert query.awaitTermination(60)
    assert values(spark, broker, target) == [b"1", b"2"]


def test_a_table_of_a_catalog_loses_its_options(spark, broker, events):
    given = f"'kafka.bootstrap.servers' '{broker.bootstrap_servers}', subscribe '{events}'"
    for source in ("kafka", "kafkaproto"):
        spark.sql(f"create table of_{source} using {source} options ({given})")
    try:
        assert spark.table("of_kafka").count() == 30
        with pytest.raises(Exception, match="CREATE TEMPORARY VIEW keeps them"):
            spark.table("of_kafkaproto").count()
        count = f"select count(*) n from of_kafkaproto with ({given.replace(' ', '=', 1)})"
        count = count.replace("subscribe ", "subscribe=")
        assert spark.sql(count).head().n == 30
    finally:
        for source in ("kafka", "kafkaproto"):
            spark.sql(f"drop table of_{source}")
