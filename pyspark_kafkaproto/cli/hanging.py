"""`kafkaproto transactions` of the whole cluster: who holds read_committed readers up, and its end.

In the words of Kafka's kafka-transactions.sh; `transactions` has what exactly-once writes left.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.moments import parse_span, show_time
from pyspark_kafkaproto.cli.output import Row, json_option, show, tell
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import (
    ActiveProducer,
    DescribedTransaction,
    HangingTransaction,
    Writer,
)
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError

_LISTED = {
    "transactional_id": "Transactional id",
    "coordinator": "Coordinator",
    "producer_id": "Producer",
    "state": "State",
}
_DESCRIBED = {
    "transactional_id": "Transactional id",
    "coordinator": "Coordinator",
    "producer_id": "Producer",
    "epoch": "Epoch",
    "state": "State",
    "timeout_ms": "Timeout ms",
    "started": "Since",
    "open_s": "Seconds",
    "partitions": "Partitions",
}
_PRODUCERS = {
    "topic": "Topic",
    "partition": "Partition",
    "producer_id": "Producer",
    "epoch": "Epoch",
    "coordinator_epoch": "Coordinator epoch",
    "last_sequence": "Last sequence",
    "last": "Last record",
    "start_offset": "Open from",
}
_HANGING = {
    "topic": "Topic",
    "partition": "Partition",
    "start_offset": "Open from",
    "producer_id": "Producer",
    "epoch": "Epoch",
    "last": "Last record",
    "idle_minutes": "Minutes",
    "transactional_id": "Transactional id",
    "state": "State",
}

_ids = click.argument("transactional_ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID…")


def list_all(
    cluster: KafkaCluster,
    states: Collection[str],
    producer_ids: Collection[int],
    longer_than: str | None,
    pattern: str | None,
    *,
    as_json: bool,
) -> None:
    """Show all transactions of the cluster, or those that the filters leave."""
    span_s = None if longer_than is None else parse_span("--longer-than", longer_than)
    found = cluster.list_transactions(states, producer_ids, span_s, pattern)
    rows = [{key: getattr(item, key) for key in _LISTED} for item in found]
    show(rows, _LISTED, as_json=as_json)


@click.command()
@connected
@_ids
@json_option
def describe(cluster: KafkaCluster, transactional_ids: tuple[str, ...], as_json: bool) -> None:
    """What transactional ids are at: producer, since when, in which partitions.

    Of a transaction that is ending the partitions are those that have no marker yet.

    \b
    Examples:
      kafkaproto transactions describe orders-copier
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    try:
        found = cluster.describe_transactions(set(transactional_ids))
    except KafkaProtoError as error:
        if error.usable:
            show(_described_rows(error.usable.values()), _DESCRIBED, as_json=as_json)
        raise
    show(_described_rows(found.values()), _DESCRIBED, as_json=as_json)


@click.command()
@connected
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITION,…]…")
@click.option("--open", "only_open", is_flag=True, help="Only those with an open transaction.")
@json_option
def producers(
    cluster: KafkaCluster, topics: tuple[str, ...], only_open: bool, as_json: bool
) -> None:
    """Who has written to partitions of late, and whose transaction is open.

    `Open from` is the offset at which an open transaction begins: read_committed reads nothing from
    there on.

    \b
    Examples:
      kafkaproto transactions producers orders --open
      kafkaproto transactions producers orders:0,1 --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    partitions = find_partitions(cluster, "TOPIC", topics)
    try:
        told = cluster.describe_producers(partitions)
    except KafkaProtoError as error:
        if error.usable:
            show(_producer_rows(error.usable, only_open), _PRODUCERS, as_json=as_json)
        raise
    show(_producer_rows(told, only_open), _PRODUCERS, as_json=as_json)


@click.command("find-hanging")
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC[:PARTITION,…]]…")
@click.option(
    "--longer-than",
    metavar="SPAN",
    default="15m",
    show_default=True,
    help="How old its last record is at least: transaction.max.timeout.ms of the brokers.",
)
@json_option
def find_hanging(
    cluster: KafkaCluster, topics: tuple[str, ...], longer_than: str, as_json: bool
) -> None:
    """Find transactions that are open in a partition and that no coordinator will end there.

    Looks into all topics if none is named. Found is what Kafka's own tool finds: the coordinator
    knows nothing of the producer, or nothing of that partition. It needs the right READ on the
    topics, and DESCRIBE on all transactional ids: one that may not be seen looks as if it hangs.

    \b
    Examples:
      kafkaproto transactions find-hanging
      kafkaproto transactions find-hanging orders:0 --longer-than 1h
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    span_s = parse_span("--longer-than", longer_than)
    chosen = find_partitions(cluster, "TOPIC", topics) if topics else None
    try:
        found = cluster.find_hanging_transactions(chosen, longer_than_s=span_s)
    except KafkaProtoError as error:
        if error.usable:
            show(_hanging_rows(error.usable), _HANGING, as_json=as_json)
        raise
    if found or as_json:
        show(_hanging_rows(found), _HANGING, as_json=as_json)
    else:
        click.echo(f"no transaction hangs whose last record is older than {longer_than}")


@click.command()
@connected
@click.argument("partition", metavar="TOPIC:PARTITION")
@click.option(
    "--start-offset",
    type=click.IntRange(0, 2**63 - 1),
    required=True,
    help="Where it is open from, as `find-hanging` shows.",
)
@click.option(
    "--even-if-live",
    is_flag=True,
    help="Also one that its coordinator will end, and may commit elsewhere, or has committed.",
)
@yes_option
@json_option
def abort(
    cluster: KafkaCluster,
    partition: str,
    start_offset: int,
    even_if_live: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Abort, in one partition, the transaction that hangs there. It cannot be undone.

    read_committed readers go on by it, and never see the transaction's records there. One that a
    coordinator will end is refused: `transactions fence` ends it everywhere. So is one that its
    coordinator says is committed, whose records would be lost.

    \b
    Examples:
      kafkaproto transactions abort orders:0 --start-offset 4211
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    place = _one_partition(cluster, partition)
    confirmed(
        f"Abort the transaction that is open in {place} from offset {start_offset} on? Under "
        "read_committed nobody will see its records there.",
        is_sure=is_sure,
    )
    producer = cluster.abort_transaction(place, start_offset, even_if_live=even_if_live)
    row = {**_producer_row(place, producer), "result": "aborted"}
    text = f"aborted the transaction of producer {producer.producer_id}:{producer.epoch} in {place}"
    tell([row], text, as_json=as_json)


@click.command()
@connected
@_ids
@yes_option
@json_option
def fence(
    cluster: KafkaCluster, transactional_ids: tuple[str, ...], is_sure: bool, as_json: bool
) -> None:
    """Fence whoever writes with transactional ids, and abort what they have open.

    A producer that still runs fails by this.

    \b
    Examples:
      kafkaproto transactions fence orders-copier
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    names = sorted(set(transactional_ids))
    question = f"Fence whoever writes as {', '.join(names)}, and abort what is open?"
    confirmed(question, is_sure=is_sure)
    try:
        fenced = cluster.fence_producers(names)
    except KafkaProtoError as error:
        if error.usable:
            _tell_fenced(error.usable.values(), as_json=as_json)
        raise
    _tell_fenced(fenced.values(), as_json=as_json)


def _tell_fenced(writers: Iterable[Writer], *, as_json: bool) -> None:
    done = sorted(writers)
    rows = [{**item._asdict(), "result": "fenced"} for item in done]
    tell(rows, f"fenced {', '.join(item.transactional_id for item in done)}", as_json=as_json)


def _one_partition(cluster: KafkaCluster, text: str) -> TopicPartition:
    if not text.rpartition(":")[2].isdecimal():
        raise ConfigError("TOPIC:PARTITION", text, "expected one partition, as in orders:0")
    (found,) = find_partitions(cluster, "TOPIC:PARTITION", [text])
    return found


def _described_rows(found: Iterable[DescribedTransaction]) -> list[Row]:
    now_ms = time.time() * 1000
    return [
        {
            **item.writer._asdict(),
            "coordinator": item.coordinator,
            "state": item.state,
            "timeout_ms": item.timeout_ms,
            "started_at_ms": item.started_at_ms,
            "started": _shown(item.started_at_ms),
            "open_s": item.started_at_ms and round((now_ms - item.started_at_ms) / 1000),
            "partitions": list(map(str, sorted(item.partitions))),
        }
        for item in sorted(found, key=lambda item: item.writer)
    ]


def _producer_rows(
    told: Mapping[TopicPartition, Iterable[ActiveProducer]], only_open: bool
) -> list[Row]:
    return [
        _producer_row(partition, item)
        for partition in sorted(told)
        for item in told[partition]
        if item.transaction_start_offset is not None or not only_open
    ]


def _producer_row(partition: TopicPartition, item: ActiveProducer) -> dict[str, object]:
    return {
        **partition._asdict(),
        "producer_id": item.producer_id,
        "epoch": item.epoch,
        "coordinator_epoch": item.coordinator_epoch,
        "last_sequence": item.last_sequence,
        "last_timestamp_ms": item.last_timestamp_ms,
        "last": _shown(item.last_timestamp_ms),
        "start_offset": item.transaction_start_offset,
    }


def _hanging_rows(found: Iterable[HangingTransaction]) -> list[Row]:
    now_ms = time.time() * 1000
    return [
        {
            **_producer_row(item.partition, item.producer),
            "idle_minutes": _minutes(item.producer.last_timestamp_ms, now_ms),
            "transactional_id": item.transactional_id,
            "state": item.state,
        }
        for item in found
    ]


def _minutes(since_ms: int | None, now_ms: float) -> int | None:
    return None if since_ms is None else int((now_ms - since_ms) // 60_000)


def _shown(timestamp_ms: int | None) -> str | None:
    return None if timestamp_ms is None else show_time(timestamp_ms)
