"""`kafkaproto consume --share-group`: records that a share group gives to this member, printed."""

from __future__ import annotations

import sys

import click

from pyspark_kafkaproto.arrow import RECORD_COLUMNS
from pyspark_kafkaproto.cli.record_format import Render
from pyspark_kafkaproto.client.following import records_of
from pyspark_kafkaproto.client.share.consumer import ShareConsumer
from pyspark_kafkaproto.client.share.held import Acknowledge
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ShareConfig

_AT_ONCE = 500


def print_shared(
    cluster: KafkaCluster, topic: str, group: str, render: Render, count: int | None
) -> None:
    """Print what comes, up to `count` records, and accept each batch once it is written.

    What is not printed goes back to the group. That of an acknowledgement that was not taken comes
    again, which is said on standard error.
    """
    if not group:
        raise ConfigError("--share-group", group, "expected the name of a group")
    if cluster.config.is_read_committed:
        allowed = "with --share-group it is a configuration of the group: share.isolation.level"
        raise ConfigError("isolation.level", cluster.config.isolation_level, allowed)
    config = ShareConfig(
        client=cluster.config,
        group_id=group,
        acknowledgement_mode="explicit",
        # What goes back was delivered, if to nobody: brokers give a record up after some times.
        acquire_mode="batch_optimized" if count is None else "record_limit",
        max_poll_records=min(_AT_ONCE, count or _AT_ONCE),
    )
    left = count
    with ShareConsumer(config, {topic}, columns=RECORD_COLUMNS) as consumer:
        for batch in consumer:
            records = records_of(batch)[:left]
            for record in records:
                sys.stdout.buffer.write(render(record))
            sys.stdout.buffer.flush()
            consumer.acknowledge(Acknowledge.RELEASE)
            last = records[-1]
            where = (last["topic"], last["partition"])
            consumer.acknowledge(Acknowledge.ACCEPT, where, records[0]["offset"], last["offset"])
            for partition, error in consumer.commit().items():
                if error is not None:
                    click.echo(f"{partition}: not accepted, comes again: {error}", err=True)
            if left is not None:
                left -= len(records)
            if left == 0:
                return
