"""The writers: checked on the driver, Arrow batches to records in the tasks.

A task writes and flushes before it reports, so what a job or a micro-batch has committed is in the
log. Without transactions what a failed or repeated task wrote before stays there too: at least
once, as with Spark's own sink. With them it is `exactly_once` that says what is committed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.errors import ConfigError, UnsupportedVersion
from pyspark_kafkaproto.net import ClientConfig, Endpoint
from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.workers import configure_logging
from pyspark_kafkaproto.spark.write_options import WriteOptions, parse_write_options
from pyspark_kafkaproto.spark.write_task import TaskReport, left_behind, summary, write_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)

# Spark's module whose processes make a writer for the commit, or the abort, of a micro-batch alone.
_COMMITTER = "python_streaming_sink_runner"
# The brokers of clusters that this process has met: who is away then comes back, and is no wrong
# address. Spark has one process make the writers of all micro-batches, of all calls of foreachBatch
# too, unless a minute lies between two.
_met: dict[ClientConfig, tuple[Endpoint, ...]] = {}
_MOST_MET = 16


class KafkaWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(KafkaWriter, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one task's rows; returns when all of them are acknowledged."""
        return write_rows(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks have written."""
        configure_logging()
        _log.info("wrote %s", summary(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A task failed; what was written stays in the topic."""
        configure_logging()
        _log.warning("the write failed; %s", left_behind(messages))


def batch_writer(
    schema: StructType, options: Mapping[str, str], *, overwrite: bool
) -> DataSourceArrowWriter:
    """A checked writer of a batch query.

    Raises:
        ConfigError: an option, a column or the save mode cannot be used.
        BrokerError: a topic does not exist, or may not be seen.
    """
    if overwrite:
        raise ConfigError("mode", "overwrite", "a topic cannot be overwritten: use append")
    checked = _checked(_parsed(schema, options))
    if checked.transactions is None:
        return KafkaWriter(checked)
    from pyspark_kafkaproto.spark.exactly_once import (  # noqa: PLC0415 - what few writes need
        exactly_once_writer,
    )

    return exactly_once_writer(checked)


def stream_writer(schema: StructType, options: Mapping[str, str]) -> DataSourceStreamArrowWriter:
    """A checked writer of one micro-batch; raises as `batch_writer` does."""
    try:
        from pyspark_kafkaproto.spark.stream_write import (  # noqa: PLC0415 - Spark 4.1 or later
            KafkaStreamWriter,
        )
    except ImportError as error:
        raise UnsupportedVersion(
            f"writing streams needs PySpark 4.1 or later, this is {pyspark.__version__}; "
            "batches can be written, those of foreachBatch too"
        ) from error
    parsed = _parsed(schema, options)
    # To end a batch no more is asked of anybody than has to be: brokers that are away by now would
    # have it written once more. They have been there, as all is written.
    met = parsed.producer.client.bootstrap_servers
    checked = replace(parsed, brokers=met) if _only_commits() else _checked(parsed)
    if checked.transactions is None:
        return KafkaStreamWriter(checked)
    from pyspark_kafkaproto.spark.exactly_once_stream import (  # noqa: PLC0415 - what few writes need
        exactly_once_stream_writer,
    )

    return exactly_once_stream_writer(checked)


def _only_commits() -> bool:
    """Whether this process is one that writes nothing."""
    return any(name.endswith(f".{_COMMITTER}") for name in list(sys.modules))


def _parsed(schema: StructType, options: Mapping[str, str]) -> WriteOptions:
    configure_logging()
    say_which_codec()
    return parse_write_options(options, schema)


def _checked(parsed: WriteOptions) -> WriteOptions:
    """With the brokers of the cluster, in which the topics are, those that are known by now."""
    client = parsed.producer.client
    router = Router(client, brokers=_met.get(client, ()))
    with packets_with_errors(), closing(router):
        found = router.described(parsed.topics, must_exist=True).brokers.values()
    brokers = tuple(broker.endpoint for broker in found)
    _remember(client, brokers)
    return replace(parsed, brokers=brokers)


def _remember(client: ClientConfig, brokers: tuple[Endpoint, ...]) -> None:
    _met.pop(client, None)
    _met[client] = brokers  # the last one used stands last
    if len(_met) > _MOST_MET:
        del _met[next(iter(_met))]
