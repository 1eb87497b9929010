"""What a Python process of Spark is prepared with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import gc
import pyspark_kafkaproto.spark.read
from pyspark_kafkaproto.spark.workers import spare_the_collector
before = len(gc.get_objects())
spare_the_collector()
frozen = gc.get_freeze_count()
spare_the_collector()
again = gc.get_freeze_count()
left = len(gc.get_objects())
import sys, types
sys.modules |= {f"more{n}": types.ModuleType("") for n in range(len(sys.modules))}
kept = [[] for _ in range(100)]
spare_the_collector()
more = gc.get_freeze_count()
kept += [[] for _ in range(100)]
spare_the_collector()
print(before, left, frozen, again, more, gc.get_freeze_count())
"""


@pytest.mark.slow
def test_what_was_imported_is_passed_over_by_garbage_collections() -> None:
    done = subprocess.run(  # a process of its own: freezing cannot be taken back
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    before, left, frozen, again, more, last = map(int, done.stdout.split())
    assert left < before / 100
    assert frozen == again > 10_000
    assert again + 100 < more == last  # what was imported since; then nothing was


_LOGGING = """
import logging, sys
from contextlib import nullcontext
from pyspark_kafkaproto.spark.workers import configure_logging
context = nullcontext
if sys.argv[1:]:
    from pyspark.logger.worker_io import capture_outputs as context
with context():
    configure_logging()
    logging.getLogger("pyspark_kafkaproto.client").info("read %s", "orders-0")
"""


def _logged(environ: dict[str, str], *arguments: str) -> list[str]:
    done = subprocess.run(  # as above
        [sys.executable, "-c", _LOGGING, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"KAFKAPROTO_LOG_LEVEL": "INFO"} | environ,
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if "orders-0" in line]


@pytest.mark.slow
def test_a_log_line_comes_once() -> None:
    (line,) = _logged({})
    assert line.endswith("INFO pyspark_kafkaproto.client: read orders-0")


@pytest.mark.slow
def test_a_log_line_comes_once_where_spark_keeps_the_logs_of_workers() -> None:
    """spark.sql.pyspark.worker.logging.enabled: what is on standard error is an ERROR to it."""
    pytest.importorskip("pyspark.logger.worker_io", reason="came with PySpark 4.1")
    (line,) = _logged({"PYSPARK_SPARK_SESSION_UUID": "1"}, "captured")
    assert line.startswith("PYTHON_WORKER_LOGGING")
    assert '"level": "INFO"' in line


_LAZY = """
import gc, sys, types, weakref
import pyspark_kafkaproto.spark.read
from pyspark_kafkaproto.spark.workers import spare_the_collector
class Kept:
    def __init__(self):
        self.me = self
kept, seen = None, []
for task in range(20):
    spare_the_collector()  # while what the task before has left for this one is alive
    sys.modules[f"lazy{task}"] = types.ModuleType("")
    kept = Kept()
    seen.append(weakref.ref(kept))
    gc.collect()  # as Spark's worker does after each task
del kept
gc.collect()
print(sum(one() is not None for one in seen))
"""


@pytest.mark.slow
def test_a_module_that_comes_late_does_not_keep_what_tasks_have_made() -> None:
    """What is frozen is never collected, in a worker that may live for days."""
    done = subprocess.run(  # as above
        [sys.executable, "-c", _LAZY], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 1


_PLANNING = """
import gc
from contextlib import suppress
from pyspark.sql.types import StructType
from pyspark_kafkaproto.errors import ConnectionFailed
from pyspark_kafkaproto.spark.source import DefaultSource
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "50"}
source = DefaultSource(options | {"OPTION": "orders"})
schema = StructType().add("value", "binary")
with suppress(ConnectionFailed):  # a writer asks the cluster
    QUESTION
print(gc.get_freeze_count())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "question"),
    [
        ("subscribe", "source.schema()"),
        ("subscribe", "source.reader(schema)"),
        ("topic", "source.writer(schema, False)"),
    ],
)
def test_processes_that_plan_pass_over_it_too(option: str, question: str) -> None:
    script = _PLANNING.replace("OPTION", option).replace("QUESTION", question)
    done = subprocess.run(  # as above
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 10_000
