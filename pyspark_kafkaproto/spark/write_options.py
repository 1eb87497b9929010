"""A write's options and columns as values: what was given, checked before a row is written. Pure.

The columns are those of Spark's own sink, in its words. What a row says of its own topic gives way
to the option `topic`; columns that no record has are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
    VarcharType,
    YearMonthIntervalType,
)

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import Endpoint, ProducerConfig
from pyspark_kafkaproto.spark.option_table import Use
from pyspark_kafkaproto.spark.options import CLIENT_PREFIX, client_properties, read_values

_log = logging.getLogger(__name__)

TIMESTAMP: Final = "timestamp"
# An id's next transaction waits until the last one's markers are written, for milliseconds.
_TRANSACTIONAL_BACKOFF_S: Final = 0.01

_TEXT: Final = (StringType, CharType, VarcharType)
_TYPES: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "value": ((*_TEXT, BinaryType), "string or binary"),
    "key": ((*_TEXT, BinaryType), "string or binary"),
    "topic": (_TEXT, "string"),
    "partition": ((IntegerType,), "int"),
    "headers": ((ArrayType,), "array<struct<key:string,value:binary>>"),
}
_PAIR: Final = (("key", _TEXT), ("value", (BinaryType,)))


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """How to write exactly once: what transactional ids begin with, where commits are decided."""

    prefix: str
    decision_topic: str


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Everything a write was told.

    Attributes:
        columns: name of a record's field to the place of its column in the rows that come.
        timestamp_column: the Arrow name of the records' timestamps, None for the time of writing.
        checkpoint: the stream's checkpointLocation, where it was given as an option.
        brokers: those that the driver has met.
    """

    producer: ProducerConfig
    topic: str | None
    columns: Mapping[str, int]
    timestamp_column: str | None
    dead_letter_topic: str | None
    transactions: TransactionOptions | None = None
    checkpoint: str | None = None
    brokers: tuple[Endpoint, ...] = ()

    @property
    def topics(self) -> frozenset[str]:
        """Topics that are known to be needed before a row comes."""
        return frozenset(filter(None, (self.topic, self.dead_letter_topic)))


def parse_write_options(options: Mapping[str, str], schema: StructType) -> WriteOptions:
    """Read and check all options of a write, and the columns of what is to be written.

    Args:
        options: with lower-cased names.
        schema: of the rows.

    Raises:
        ConfigError: names the option or column, its value and what is allowed.
    """
    values = read_values(options, Use.WRITE)
    topic, time_column = values["topic"], values["timestampColumn"]
    # A column that an option takes the place of is none of our business.
    columns = _columns(schema, time_column, _TYPES.keys() - ({"topic"} if topic else set()))
    if topic is None and "topic" not in columns:
        raise ConfigError(
            "topic",
            None,
            "required when no 'topic' attribute is present. Use the topic option for setting a "
            "topic",
        )
    properties = client_properties(options)
    producer = ProducerConfig.parse(properties, CLIENT_PREFIX)
    transactions = _transactions(options, values, producer)
    if transactions is not None:
        producer = _for_transactions(producer, properties)
    producer.name_idle(properties, in_transactions=transactions is not None)
    return WriteOptions(
        producer=producer,
        topic=topic,
        columns=columns,
        timestamp_column=None if time_column is None else TIMESTAMP,
        dead_letter_topic=_dead_letter_topic(values["onInvalidRecord"], values["deadLetterTopic"]),
        transactions=transactions,
        checkpoint=options.get("checkpointlocation"),
    )


def _for_transactions(producer: ProducerConfig, given: Collection[str]) -> ProducerConfig:
    """With what suits the transactions of tasks, where nothing else is given."""
    if "transaction.timeout.ms" not in given:
        # All of a batch has to end within it, and what its tasks leave open is looked for.
        producer = replace(producer, transaction_timeout_s=None)
    if "retry.backoff.ms" not in given:
        client = replace(producer.client, retry_backoff_s=_TRANSACTIONAL_BACKOFF_S)
        producer = replace(producer, client=client)
    return producer


def _transactions(
    options: Mapping[str, str], values: Mapping[str, Any], producer: ProducerConfig
) -> TransactionOptions | None:
    prefix, topic = values["transactionalIdPrefix"], values["decisionTopic"]
    if prefix is None:
        if "decisiontopic" in options:
            raise ConfigError(
                "decisionTopic", topic, "has a meaning only with transactionalIdPrefix"
            )
        return None
    if not producer.enable_idempotence:
        raise ConfigError(
            "transactionalIdPrefix",
            prefix,
            "transactions need idempotence: kafka.enable.idempotence=true with kafka.acks=all, "
            "kafka.retries of 1 or more, and at most 5 "
            "kafka.max.in.flight.requests.per.connection",
        )
    return TransactionOptions(prefix, topic)


def _dead_letter_topic(on_invalid: str, topic: str | None) -> str | None:
    if on_invalid == "deadletter" and topic is None:
        raise ConfigError("deadLetterTopic", None, "required by onInvalidRecord=deadletter")
    if on_invalid == "fail" and topic is not None:
        raise ConfigError(
            "deadLetterTopic", topic, "has a meaning only with onInvalidRecord=deadletter"
        )
    return topic


def _columns(
    schema: StructType, time_column: str | None, wanted: Collection[str]
) -> dict[str, int]:
    """Where each field of a record is, its type checked.

    Names are exactly these, as for Spark's own sink: a `Partition` of the user's routes nothing.
    """
    places: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = field.name
        if isinstance(field.dataType, YearMonthIntervalType):  # in a task: KeyError: 21, no more
            given = f"{name} {field.dataType.simpleString()}"
            reason = "pyarrow has no such columns: leave it out, or cast it to string"
            raise ConfigError("schema", given, reason)
        if name not in wanted:
            if name.lower() in wanted:
                _log.warning("column %r is not written: the sink's is %r", name, name.lower())
            continue
        if name in places:
            raise ConfigError("schema", schema.simpleString(), f"column {name!r} is there twice")
        places[name] = place
        kinds, expected = _TYPES[name]
        if not isinstance(field.dataType, kinds) or not _is_pairs(field.dataType):
            given = field.dataType.simpleString()
            raise ConfigError("schema", f"{field.name} {given}", f"{name} must be {expected}")
    if "value" not in places:
        raise ConfigError("schema", schema.simpleString(), "required attribute 'value' not found")
    if time_column is not None:
        places[TIMESTAMP] = _time_column(schema, time_column)
    return places


def _is_pairs(kind: DataType) -> bool:
    """Whether an array is one of headers; anything else is none of our business."""
    if not isinstance(kind, ArrayType):
        return True
    pair = kind.elementType
    return (
        isinstance(pair, StructType)
        and [
            (field.name.lower(), isinstance(field.dataType, kinds))
            for field, (_, kinds) in zip(pair.fields, _PAIR, strict=False)
        ]
        == [(name, True) for name, _ in _PAIR]
        and len(pair.fields) == len(_PAIR)
    )


def _time_column(schema: StructType, name: str) -> int:
    alike = [at for at, field in enumerate(schema.fields) if field.name.lower() == name.lower()]
    if not alike:
        raise ConfigError(
            "timestampColumn", name, f"there is no such column; there are {schema.fieldNames()}"
        )
    # The one that is written so comes before others that Spark would take, too.
    place = min(alike, key=lambda at: schema[at].name != name)
    kind = schema[place].dataType
    if not isinstance(kind, TimestampType):
        reason = f"the column is {kind.simpleString()}, not timestamp"
        raise ConfigError("timestampColumn", name, reason)
    return place
