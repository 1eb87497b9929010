"""What Spark ships to executors and calls there."""

import pickle

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError
from pyspark_kafkaproto.net import pool
from pyspark_kafkaproto.spark import DefaultSource, shipping
from pyspark_kafkaproto.spark import source as source_module
from pyspark_kafkaproto.spark.columns import default_schema
from pyspark_kafkaproto.spark.stream.unlimited import UnlimitedStreamReader
from tests.fake_broker import FakeCluster


@pytest.fixture
def brokers(monkeypatch):
    pools = {}
    monkeypatch.setattr(pool, "_pools", pools)
    with FakeCluster({"orders": 2}) as fake:
        for partition in (0, 1):
            fake.logs["orders", partition].fill(2)
        yield fake
        for kept in pools.values():
            kept.close()


def source(brokers, **options):
    return DefaultSource(
        {"kafka.bootstrap.servers": brokers.address(), "subscribe": "orders"} | options
    )


def test_source_is_called_as_documented_and_tells_its_schema(brokers):
    assert DefaultSource.name() == "kafkaproto"
    assert source(brokers).schema() == default_schema(include_headers=False)
    assert source(brokers, includeHeaders="true").schema() == default_schema(include_headers=True)
    assert source(brokers, columns="value string").schema() == StructType(
        [StructField("value", StringType())]
    )


def test_headers_that_are_asked_for_are_among_the_columns(brokers):
    with pytest.raises(ConfigError, match="'columns' is 'value': includeHeaders is true"):
        source(brokers, includeHeaders="true", columns="value").schema()
    alone = StructType([StructField("value", StringType())])
    with pytest.raises(ConfigError, match="'schema' is 'struct<value:string>': includeHeaders"):
        source(brokers, includeHeaders="true").reader(alone)
    refused = source(brokers, includeHeaders="true").streamReader(alone)
    with pytest.raises(ConfigError, match="headers must be among them"):
        refused.initialOffset()


def test_the_column_for_damaged_batches_is_among_those_that_are_asked_for(brokers):
    """Without it they would be left out, as by DROPMALFORMED."""
    missing = "mode is PERMISSIVE, so '_corrupt_record' must be among them.*DROPMALFORMED"
    with pytest.raises(ConfigError, match=f"'columns' is 'value string, offset': {missing}"):
        source(brokers, mode="PERMISSIVE", columns="value string, offset").schema()
    alone = StructType([StructField("value", StringType())])
    with pytest.raises(ConfigError, match=f"'schema' is 'struct<value:string>': {missing}"):
        source(brokers, mode="permissive").reader(alone)
    aside = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "aside"}
    with pytest.raises(ConfigError, match="'aside' must be among them"):
        source(brokers, **aside).streamReader(alone).initialOffset()
    kept = source(brokers, **aside, columns="value, aside")
    kept.reader(kept.schema())
    source(brokers, mode="DROPMALFORMED").reader(alone)


def test_options_are_read_whatever_their_case(brokers):
    assert source(brokers, INCLUDEHEADERS="true").schema() == default_schema(include_headers=True)
    with pytest.raises(ConfigError, match="maxPartitions"):
        source(brokers, MaxPartitions="none").reader(default_schema(include_headers=False))


def test_pyspark_without_limits_reads_streams_and_refuses_limits(brokers, monkeypatch):
    monkeypatch.setattr(source_module, "_FOR_LIMITS", "pyspark.no_such_module")
    schema = default_schema(include_headers=False)
    reader = source(brokers).streamReader(schema)
    assert isinstance(reader, UnlimitedStreamReader)
    reader = source(brokers, MaxOffsetsPerTrigger="10").streamReader(schema)
    with pytest.raises(
        ConfigError, match=r"'maxOffsetsPerTrigger' is '10': limits need PySpark 4\.2 or later"
    ):
        reader.latestOffset()


def test_a_stream_that_is_refused_says_why_at_whatever_is_asked_first(brokers):
    """Where `streamReader` raises, Spark's runner ends with an error of its own."""
    schema = default_schema(include_headers=False)
    reader = source(brokers, maxOffsetsPerTrigger="ten").streamReader(schema)
    for ask in (reader.initialOffset, reader.latestOffset, lambda: reader.partitions({}, {})):
        with pytest.raises(ConfigError, match="'maxOffsetsPerTrigger' is 'ten'"):
            ask()
    reader.stop()


def test_reader_opens_nothing_before_it_is_used(brokers):
    reader = source(brokers).reader(default_schema(include_headers=False))
    pickle.loads(pickle.dumps(reader))
    assert brokers.calls == []


def test_pickled_reader_reads_the_planned_partitions(brokers):
    schema = StructType([StructField("value", StringType())])
    reader = source(brokers).reader(schema)
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    executor = pickle.loads(pickle.dumps(reader))
    values = [
        row["value"]
        for partition in partitions
        for batch in executor.read(partition)
        for row in batch.to_pylist()
    ]
    assert values == 2 * [f"{offset} ".ljust(10, ".") for offset in range(20)]


@pytest.mark.parametrize("planned", [InputPartition(None), None], ids=["since 4.2", "4.0 and 4.1"])
def test_empty_plan_of_spark_gives_no_rows(brokers, planned):
    reader = source(brokers).reader(default_schema(include_headers=False))
    assert list(reader.read(planned)) == []


@pytest.mark.parametrize("option", ["columns", "schema"])
def test_text_that_is_no_utf_8_is_blamed_on_what_asked_for_text(brokers, option):
    brokers.logs["orders", 1].append(b"plain", b"\xff")
    asked = source(brokers, **({"columns": "value string"} if option == "columns" else {}))
    reader = asked.reader(StructType([StructField("value", StringType())]))
    told = f"option '{option}' is 'value string': the value of orders-1 at offset 21 is not UTF-8"
    with pytest.raises(ConfigError, match=told):
        [list(reader.read(partition)) for partition in reader.partitions()]


def test_input_partition_of_another_source_is_refused(brokers):
    reader = source(brokers).reader(default_schema(include_headers=False))
    with pytest.raises(LocalProtocolError, match="not an input partition of this source"):
        reader.read(InputPartition(0))


def test_executor_with_another_version_names_both(brokers, monkeypatch):
    payload = pickle.dumps(source(brokers).reader(default_schema(include_headers=False)))
    monkeypatch.setattr(shipping, "__version__", "9.9.9")
    with pytest.raises(LocalProtocolError, match=r"runs pyspark-kafkaproto 0.*executor 9\.9\.9"):
        pickle.loads(payload)


READS, WRITES = r"VIEW keeps them.*SELECT … FROM t WITH \(…\)", r"say INSERT INTO t WITH \(…\)"


@pytest.mark.parametrize(
    ("use", "advice"),
    [
        (lambda source, columns: source.reader(columns), READS),
        (lambda source, columns: source.streamReader(columns).initialOffset(), READS),
        (lambda source, columns: source.writer(columns, overwrite=False), WRITES),
        (lambda source, columns: source.streamWriter(columns, overwrite=False), WRITES),
    ],
)
def test_a_table_that_lost_its_options_is_told_of(use, advice):
    """Spark gives those of a catalog's table to no source in Python."""
    columns = default_schema(include_headers=False)
    with pytest.raises(ConfigError, match=advice):
        use(DefaultSource({}), columns)
