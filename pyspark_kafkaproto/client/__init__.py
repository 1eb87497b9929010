"""Records in and out of a cluster: where the control plane meets the data plane.

`reading` brings ranges of offsets as Arrow record batches, `committed` plans those that a group has
not seen, and `following` goes on with what has come since. `produce` writes such batches (its
parts: `writing`), in `transactions` if wanted; `decisions` (kept in the topic that `decision_topic`
makes) and `batch_commit` make one commit of those of many tasks. `consumer` reads as a member of a
group (its parts: `group`), and is not imported here: executors do without. `loadtest` does it all.
`codec` warns of a slow one, `process` refuses what a fork has copied, `processors` counts what
there is to compute with.
What carries rows is loaded on first use: each Python process of Spark that plans would pay for it,
and for pyarrow. Nothing here knows of Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.client.committed import commit_ranges, committing, plan_ranges
from pyspark_kafkaproto.client.reading.ranges import (
    Mode,
    OffsetRange,
    RangeReport,
    ReadSettings,
    ReadTask,
)

if TYPE_CHECKING:
    from pyspark_kafkaproto.client.loadtest import Load, LoadTest
    from pyspark_kafkaproto.client.produce import Producer
    from pyspark_kafkaproto.client.reading.decode import read_batches
    from pyspark_kafkaproto.client.reading.fetch import Fetcher
    from pyspark_kafkaproto.client.writing.plain import ProducerRecord
    from pyspark_kafkaproto.client.writing.queues import Written

# name -> the module here that defines it
_LOADED_ON_USE = {
    "Fetcher": "reading.fetch",
    "Load": "loadtest",
    "LoadTest": "loadtest",
    "Producer": "produce",
    "ProducerRecord": "writing.plain",
    "Written": "writing.queues",
    "read_batches": "reading.decode",
}

__all__ = [
    "Fetcher",
    "Load",
    "LoadTest",
    "Mode",
    "OffsetRange",
    "Producer",
    "ProducerRecord",
    "RangeReport",
    "ReadSettings",
    "ReadTask",
    "Written",
    "commit_ranges",
    "committing",
    "plan_ranges",
    "read_batches",
]


def __getattr__(name: str) -> Any:
    """Load a name from its module on first use (PEP 562)."""
    home = _LOADED_ON_USE.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
