"""Which columns there are and which subsets may be asked for."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyspark_kafkaproto.arrow import COLUMN_NAMES, schema_for
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark import columns
from pyspark_kafkaproto.spark.columns import checked_schema, default_schema, parse_columns
from pyspark_kafkaproto.spark.options import damaged_column

# As Spark's own connector describes itself.
SPARKS = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
    "timestamp:timestamp,timestampType:int>"
)
SPARKS_HEADERS = ",headers:array<struct<key:string,value:binary>>>"


def test_default_schema_is_that_of_sparks_own_connector():
    assert default_schema(include_headers=False).simpleString() == SPARKS
    assert default_schema(include_headers=True).simpleString() == SPARKS[:-1] + SPARKS_HEADERS


def test_arrow_schema_has_the_same_columns_in_the_same_order():
    assert columns.COLUMN_NAMES == COLUMN_NAMES
    for headers in (False, True):
        names = default_schema(include_headers=headers).fieldNames()
        assert list(COLUMN_NAMES[: len(names)]) == names


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("value", "struct<value:binary>"),
        ("offset, key string ,value", "struct<offset:bigint,key:string,value:binary>"),
        (
            "key STRING,offset long,partition integer",
            "struct<key:string,offset:bigint,partition:int>",
        ),
        ("offset bigint", "struct<offset:bigint>"),
        (
            "headers,timestamp",
            SPARKS_HEADERS.replace(",", "struct<", 1)[:-1] + ",timestamp:timestamp>",
        ),
        # As `simpleString` and DESCRIBE show it: a comma within a type separates no columns.
        (
            "value, headers array<struct<key:string,value:binary>>,offset bigint",
            "struct<value:binary,headers:array<struct<key:string,value:binary>>,offset:bigint>",
        ),
        # As one writes it in `.schema(…)`.
        (
            "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, value",
            "struct<headers:array<struct<key:string,value:binary>>,value:binary>",
        ),
    ],
)
def test_columns_are_read_in_their_order(text, schema):
    assert parse_columns("columns", text).simpleString() == schema


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("value\tint", "column value is binary or string, not int"),
        ("", "no column ''"),
        ("key,", "no column ''"),
        ("keys", "no column 'keys'"),
        ("Key", "no column 'Key'"),
        ("key int", "column key is binary or string, not int"),
        ("offset string", "column offset is bigint, not string"),
        ("key,value,key", "option 'columns' is 'key,value,key': 'key' is there twice"),
        ("headers map<string,binary>", ">>, not map<string,binary>"),
    ],
)
def test_bad_columns_say_what_is_allowed(text, says):
    with pytest.raises(ConfigError) as caught:
        parse_columns("columns", text)
    assert says in str(caught.value)


def test_the_column_for_damaged_batches_may_be_named_with_its_type():
    """As docs/options.md shows the type, and as `.schema(…)` takes it."""
    text = "value, aside struct<reason: string, data: binary>, offset"
    assert parse_columns("columns", text, "aside") == parse_columns(
        "columns", "value, aside, offset", "aside"
    )
    with pytest.raises(ConfigError, match=r"column aside is struct<reason:string,.*>, not string"):
        parse_columns("columns", "value, aside string", "aside")
    with pytest.raises(ConfigError, match=r"no column 'beside': .*'headers', 'aside'"):
        parse_columns("columns", "value, beside", "aside")


@pytest.mark.parametrize(
    "schema",
    [
        default_schema(include_headers=True),
        StructType([StructField("offset", LongType())]),
        StructType([StructField("value", StringType()), StructField("key", BinaryType())]),
    ],
    ids=lambda schema: schema.simpleString()[:40],
)
def test_subset_in_any_order_is_a_schema(schema):
    assert checked_schema(schema) is schema


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([], "expected some of key binary or string"),
        ([("values", BinaryType())], "'values' is not a column of this source; there are key"),
        ([("key", IntegerType())], "'key int': expected binary or string"),
        ([("offset", IntegerType())], "expected bigint"),
        ([("timestamp", TimestampNTZType())], "expected timestamp"),
        ([("offset", LongType()), ("offset", LongType())], "'offset' is there twice"),
    ],
)
def test_other_schema_says_what_is_allowed(fields, says):
    with pytest.raises(ConfigError) as caught:
        checked_schema(StructType([StructField(name, kind) for name, kind in fields]))
    assert says in str(caught.value)


def test_what_is_inside_a_column_is_nullable_too():
    pair = default_schema(include_headers=True)["headers"].dataType.elementType
    fields = StructType([StructField("headers", ArrayType(pair, containsNull=False))])
    with pytest.raises(ConfigError, match="what is inside nullable, too"):
        checked_schema(fields)


@pytest.mark.parametrize("name", ["value", "VALUE", "Partition"])
def test_a_column_for_damaged_batches_is_none_that_spark_takes_for_another(name):
    with pytest.raises(ConfigError, match=f"'{name}'.*is a column of the records already"):
        damaged_column({"mode": "PERMISSIVE", "columnnameofcorruptrecord": name})


def test_column_that_may_not_be_null_is_refused():
    schema = StructType([StructField("offset", LongType(), nullable=False)])
    with pytest.raises(ConfigError, match="'offset NOT NULL': columns of this source are nullable"):
        checked_schema(schema)


def test_column_for_damaged_batches_has_the_name_that_was_asked_for():
    schema = default_schema(include_headers=False, damaged_column="aside")
    assert schema.fields[-1].simpleString() == "aside:struct<reason:string,data:binary>"
    assert checked_schema(schema, "aside") is schema
    assert parse_columns("columns", "offset, aside", "aside").fieldNames() == ["offset", "aside"]
    with pytest.raises(ConfigError, match="'aside' is not a column of this source"):
        checked_schema(schema)
    assert schema_for(schema.fieldNames(), damaged_column="aside").names == schema.fieldNames()
