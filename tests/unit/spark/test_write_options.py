"""A write's options and columns: good, bad, in Spark's words."""

import logging
import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    YearMonthIntervalType,
)

from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError
from pyspark_kafkaproto.spark import shipping
from pyspark_kafkaproto.spark.write import KafkaWriter
from pyspark_kafkaproto.spark.write_options import TransactionOptions, parse_write_options

SERVERS = {"kafka.bootstrap.servers": "b-1:9092"}
LEAST = SERVERS | {"topic": "orders"}
PAIR = StructType().add("key", StringType()).add("value", BinaryType())
TRIPLE = StructType(list(PAIR.fields)).add("more", BinaryType())
PAIRS_OF_OTHERS = StructType().add("name", StringType()).add("value", BinaryType())


def schema(**columns):
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


VALUE = schema(value=StringType())


def test_least_that_must_be_given():
    options = parse_write_options(LEAST, VALUE)
    assert (options.topic, dict(options.columns)) == ("orders", {"value": 0})
    assert (options.timestamp_column, options.dead_letter_topic) == (None, None)
    assert options.producer.enable_idempotence
    assert options.topics == {"orders"}
    assert options.checkpoint is None


def test_where_invalid_records_go_is_a_topic_that_is_needed_from_the_start():
    letters = {"oninvalidrecord": "deadletter", "deadlettertopic": "letters"}
    options = parse_write_options(LEAST | letters, VALUE)
    assert options.dead_letter_topic == "letters"
    assert options.topics == {"orders", "letters"}


def test_columns_are_found_by_name_in_any_order():
    rows = schema(
        offset=LongType(),
        headers=ArrayType(PAIR),
        key=BinaryType(),
        partition=IntegerType(),
        topic=VarcharType(9),
        timestamp=TimestampType(),
        value=BinaryType(),
    )
    found = {"headers": 1, "key": 2, "partition": 3, "topic": 4, "value": 6}
    assert parse_write_options(SERVERS, rows).columns == found
    del found["topic"]
    assert parse_write_options(LEAST, rows).columns == found
    timed = parse_write_options(LEAST | {"timestampcolumn": "TIMESTAMP"}, rows)
    assert timed.columns == found | {"timestamp": 5}
    assert timed.timestamp_column == "timestamp"


def test_names_in_another_case_are_no_columns_as_for_sparks_own_sink(caplog):
    """A user's `Partition` says nothing about where a record goes."""
    rows = schema(Partition=StringType(), value=BinaryType(), Key=BinaryType(), VALUE=LongType())
    rows.add("other", LongType())
    assert parse_write_options(LEAST, rows).columns == {"value": 1}
    said = [record.getMessage() for record in caplog.records]
    assert "column 'Partition' is not written: the sink's is 'partition'" in said
    assert len(said) == 3
    with pytest.raises(ConfigError, match="required attribute 'value' not found"):
        parse_write_options(LEAST, schema(VALUE=BinaryType()))


def test_a_column_that_an_option_takes_the_place_of_may_be_of_any_type():
    rows = schema(value=BinaryType(), topic=IntegerType())
    assert parse_write_options(LEAST, rows).columns == {"value": 0}
    with pytest.raises(ConfigError, match="topic must be string"):
        parse_write_options(SERVERS, rows)


def test_fields_of_headers_are_found_in_any_case():
    pair = StructType().add("KEY", StringType()).add("Value", BinaryType())
    rows = schema(value=BinaryType(), headers=ArrayType(pair))
    assert parse_write_options(LEAST, rows).columns == {"value": 0, "headers": 1}


def test_the_time_column_that_is_written_so_comes_first():
    rows = schema(value=BinaryType(), AT=LongType(), at=TimestampType())
    found = parse_write_options(LEAST | {"timestampcolumn": "at"}, rows)
    assert found.columns == {"value": 0, "timestamp": 2}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (schema(key=StringType()), "required attribute 'value' not found"),
        (schema(value=IntegerType()), "value int.*value must be string or binary"),
        (schema(value=StringType(), key=LongType()), "key must be string or binary"),
        (schema(value=StringType(), partition=LongType()), "partition must be int"),
        (schema(value=StringType(), headers=ArrayType(StringType())), "headers must be array<"),
        (schema(value=StringType(), headers=PAIR), "headers must be array<"),
        (
            schema(value=StringType(), headers=ArrayType(StructType().add("key", StringType()))),
            "headers must be array<",
        ),
        (schema(value=StringType(), headers=ArrayType(PAIRS_OF_OTHERS)), "headers must be array<"),
        (schema(value=StringType(), headers=ArrayType(TRIPLE)), "headers must be array<"),
        (schema(value=StringType()).add("value", StringType()), "'value' is there twice"),
        (
            schema(value=StringType(), term=YearMonthIntervalType()),
            "term interval year to month.*leave it out, or cast it",
        ),
    ],
)
def test_a_column_that_no_record_has_is_named(rows, text):
    with pytest.raises(ConfigError, match=text):
        parse_write_options(LEAST, rows)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"topic": " "}, "'topic'"),
        ({"timestampcolumn": "when"}, "'when': there is no such column"),
        ({"timestampcolumn": "value"}, "the column is string, not timestamp"),
        ({"oninvalidrecord": "skip"}, "expected fail or deadletter"),
        ({"oninvalidrecord": "deadletter"}, "deadLetterTopic.*required"),
        ({"deadlettertopic": "letters"}, "only with onInvalidRecord=deadletter"),
        ({"kafka.acks": "2"}, "kafka.acks.*expected all"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer.*not supported"),
    ],
)
def test_a_bad_option_is_named(given, text):
    with pytest.raises(ConfigError, match=text):
        parse_write_options(LEAST | given, VALUE)


def test_a_time_without_zone_is_no_timestamp():
    rows = schema(value=StringType(), when=TimestampNTZType())
    with pytest.raises(ConfigError, match="timestamp_ntz, not timestamp"):
        parse_write_options(LEAST | {"timestampcolumn": "when"}, rows)


def test_an_option_of_reading_has_no_effect_and_says_so(caplog):
    with caplog.at_level(logging.WARNING):
        parse_write_options(LEAST | {"startingoffsets": "earliest"}, VALUE)
    assert "startingOffsets has no effect in writes" in caplog.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.group.id": "g"}, "option kafka.group.id has no effect in writes"),
        ({"groupidprefix": "g"}, "option groupIdPrefix has no effect in writes"),
        (
            {"kafka.isolation.level": "read_committed"},
            "client property kafka.isolation.level has no effect on what is written: it is",
        ),
        (
            {"kafka.transaction.timeout.ms": "5000"},
            "client property kafka.transaction.timeout.ms has no effect on what is written",
        ),
    ],
)
def test_what_has_no_effect_in_a_write_is_named_once(given, said, caplog):
    for _ in range(2):
        parse_write_options(LEAST | given, VALUE)
    (named,) = caplog.messages
    assert named.startswith(said)


def test_the_time_of_a_transaction_has_an_effect_in_one(caplog):
    given = {"kafka.transaction.timeout.ms": "5000", "transactionalidprefix": "p"}
    parse_write_options(LEAST | given, VALUE)
    assert not caplog.messages


def test_sparks_own_option_is_not_called_unknown(caplog):
    options = parse_write_options(LEAST | {"checkpointlocation": "folder"}, VALUE)
    assert options.checkpoint == "folder", "it says whose batches a driver has left"
    assert "checkpoint" not in caplog.text


def test_the_name_of_a_query_is_not_called_unknown(caplog):
    parse_write_options(LEAST | {"queryname": "orders"}, VALUE)
    assert not caplog.text, "writeStream.queryName(...) gives it, and Spark names the query by it"


def test_no_topic_is_refused_in_sparks_words():
    with pytest.raises(ConfigError, match="required when no 'topic' attribute is present"):
        parse_write_options(SERVERS, VALUE)


def test_a_pickled_writer_asks_for_its_own_version(monkeypatch):
    writer = KafkaWriter(parse_write_options(LEAST, VALUE))
    pickled = pickle.dumps(writer)
    assert pickle.loads(pickled)._options == writer._options
    monkeypatch.setattr(shipping, "__version__", "0.0.1")
    with pytest.raises(LocalProtocolError, match=r"install the same version on both"):
        pickle.loads(pickled)


def test_exactly_once_is_asked_for_by_a_prefix():
    options = parse_write_options(LEAST | {"transactionalidprefix": "job"}, VALUE)
    assert options.transactions == TransactionOptions("job", "kafkaproto-decisions")
    assert options.producer.client.retry_backoff_s < 0.1
    given = LEAST | {"transactionalidprefix": "job", "decisiontopic": "d"}
    given |= {"kafka.retry.backoff.ms": "300"}
    options = parse_write_options(given, VALUE)
    assert options.transactions == TransactionOptions("job", "d")
    assert options.producer.client.retry_backoff_s == 0.3
    assert parse_write_options(LEAST, VALUE).transactions is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"decisiontopic": "d"}, "decisionTopic.*only with transactionalIdPrefix"),
        ({"transactionalidprefix": "p", "kafka.acks": "1"}, "transactionalIdPrefix.*idempotence"),
        ({"kafka.transactional.id": "t"}, "set the source option transactionalIdPrefix"),
        ({"transactionidprefix": "p"}, "transactionidprefix.*'p'.*did you mean transactionalIdPr"),
        ({"transactional_id_prefix": "p"}, "did you mean transactionalIdPrefix"),
        ({"transactional.id": "t"}, "did you mean transactionalIdPrefix"),
    ],
)
def test_transactions_that_cannot_be_are_refused(given, text):
    with pytest.raises(ConfigError, match=text):
        parse_write_options(LEAST | given, VALUE)


@pytest.mark.parametrize(
    ("given", "timeout_s"),
    [
        ({}, 60.0),
        ({"transactionalidprefix": "p"}, None),
        ({"transactionalidprefix": "p", "kafka.transaction.timeout.ms": "5000"}, 5.0),
    ],
)
def test_a_batchs_transactions_stay_open_as_long_as_brokers_allow(given, timeout_s):
    producer = parse_write_options(LEAST | given, VALUE).producer
    assert producer.transaction_timeout_s == timeout_s
