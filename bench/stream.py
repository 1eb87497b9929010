"""How fast are streams, beside Spark's own connector and beside what the engine itself takes?

    python bench/stream.py                   catch-up, micro-batches, idle: about 15 minutes
    python bench/stream.py --quick           small: does everything run?
    python bench/stream.py --parts soak      ten minutes at 1,000 records/s: memory and sockets

Topics are written by Kafka's own producer into the dev broker, or into KAFKA_BOOTSTRAP_SERVERS when
that is set. All run in one Spark application with the settings of conf/.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from read import ROOT, SPARK_CONF, broker, machine_facts, names
from reading.measures import Place
from reading.processes import RunFailed, SparkApp
from reading.rival_jars import connector_jars
from reading.tables import bar_table
from reading.workloads import Topics, Workload
from streaming import measures
from streaming.measures import FLOOR, OURS, RIVAL

from pyspark_kafkaproto import KafkaCluster

if TYPE_CHECKING:
    from reading.bars import Bar

PARTS = ("catch-up", "batches", "idle", "soak")
BATCH_ROWS = 1_000
VALUE_BYTES = 100


def main() -> int:
    options = parse()
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n", flush=True)
    try:
        bars = list(run(options))
    except KeyboardInterrupt:
        print("interrupted: everything that was started has ended", file=sys.stderr)
        return 130
    except RunFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(bar_table(bars))
    return 0


def run(options: argparse.Namespace) -> Iterator[Bar]:
    """Part after part; tables are printed as they come."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-stream-")))
        tools = stack.enter_context(broker(keep=False))
        properties = {"bootstrap.servers": tools.bootstrap_servers}
        cluster = stack.enter_context(KafkaCluster(properties))
        topics = stack.enter_context(Topics(tools, cluster, keep=False))
        conf = SPARK_CONF | {
            "spark.jars": ",".join(connector_jars()),
            "spark.sql.streaming.numRecentProgressUpdates": "10000",
        }
        app = SparkApp(ROOT / "conf", conf, folder / "app", module="streaming.stream_app")
        stack.enter_context(app)
        for part in options.parts:
            print(f"{part} …", file=sys.stderr, flush=True)
            table, bars = measure(part, options, app, Place(tools, folder), topics)
            print(table, end="\n\n", flush=True)
            yield from bars


def measure(
    part: str, options: argparse.Namespace, app: SparkApp, place: Place, topics: Topics
) -> tuple[str, list[Bar]]:
    """One part: the table and the bars."""
    if part == "catch-up":
        workload = Workload(options.records, VALUE_BYTES, "lz4")
        topics.make(workload)
        both = {source: _options(place, workload.topic) for source in (OURS, RIVAL)}
        return measures.catch_up(app, both, options.records, options.rounds)
    if part == "batches":
        workload = Workload(BATCH_ROWS * options.batches, VALUE_BYTES, "none", 1)
        topics.make(workload)
        place.write_shape(workload)
        limited = _options(place, workload.topic) | {"maxOffsetsPerTrigger": str(BATCH_ROWS)}
        prebuilt = {
            "shape": str(place.shape_folder(workload)),
            "rows": str(BATCH_ROWS),
            "batches": str(options.batches),
        }
        every = {OURS: limited, FLOOR: prebuilt, RIVAL: limited}
        return measures.micro_batches(app, every, options.rounds)
    topic = f"bench-stream-{uuid.uuid4().hex[:8]}"
    place.tools.create_topic(topic, 1)
    started = _options(place, topic)
    if part == "idle":
        return measures.idle(app, started, options.idle_s)
    return measures.soak(app, place.tools, started, topic, options.minutes)


def _options(place: Place, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": place.servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


def parse() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--parts", type=names(PARTS), default=PARTS[:3], help=f"some of {','.join(PARTS)}")
    add("--records", type=int, help="of the catch-up (default 4,000,000)")
    add("--batches", type=int, help="micro-batches a round (default 100)")
    add("--rounds", type=int, help="kept rounds (default 3)")
    add("--idle-s", type=float, help="how long idleness is looked at (default 30)")
    add("--minutes", type=int, default=10, help="of the soak (default 10)")
    add("--quick", action="store_true", help="small topics, one round")
    options = parser.parse_args()
    options.records = options.records or (100_000 if options.quick else 4_000_000)
    options.batches = options.batches or (20 if options.quick else 100)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.idle_s = options.idle_s or (5 if options.quick else 30)
    return options


if __name__ == "__main__":
    sys.exit(main())
