"""How many bytes an offset takes, by a look at the batches that come next.

For users who may not ask brokers how large logs are: whoever may read may look at headers.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafkaproto.client.reading.fetch import Fetcher
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import base_offset, skim

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster import TopicPartition
    from pyspark_kafkaproto.net import ClientConfig

_log = logging.getLogger(__name__)

# Some batches of each partition; a broker sends one whole batch at least, whatever its size.
_PARTITION_BYTES = 16 << 10


def probe_bytes_per_offset(task: ReadTask, config: ClientConfig) -> dict[TopicPartition, float]:
    """Mean bytes of an offset among the next batches from each range's start, compressed.

    One Fetch for as many partitions as fit into an answer; nothing is decompressed. Partitions
    without a batch are left out, and those behind a batch that is damaged: reading will tell.

    Args:
        task: ranges with a start, and their leaders.
        config: the client's configuration.

    Raises:
        KafkaProtoError: this user may not read, no broker answers, ….
    """
    first = tuple(
        OffsetRange(item.topic, item.partition, item.start, item.start + 1)
        for item in task.ranges
        if item.start is not None
    )
    little = min(_PARTITION_BYTES, config.max_partition_fetch_bytes)
    fetcher = Fetcher(
        replace(task, ranges=first),
        replace(config, max_partition_fetch_bytes=little),
        ReadSettings(fail_on_data_loss=False),
    )
    found: dict[TopicPartition, float] = {}
    try:
        for block in fetcher.blocks():
            block.finish()
            seen = skim(block.records)
            if seen.next_offset is None:
                continue  # its answer broke off
            # A compressed message of magic 0 or 1 has the offset of the last one in it.
            begin = min(base_offset(block.records), block.start)
            found[block.progress.topic_partition] = seen.pos / max(1, block.end - begin)
    except CorruptRecords as error:
        _log.warning("the size of records is not known everywhere: %s", error)
    return found
