"""Spark's side of a write, without Spark: processes that die, tasks tried again, batches repeated.

As Spark does it: a writer is made in a process of the driver, pickled, unpickled in each task; a
stream's commit has a new writer, a batch query's the same one; a task that died is tried again
under the next attempt number; a commit that failed is followed by an abort, unless everything died;
a micro-batch that has not come through is repeated under its number, split over tasks differently.
One task of each batch has a speculative twin, whose report never reaches the driver.
"""

from __future__ import annotations

import multiprocessing
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from pyspark_kafkaproto.net import connections_for
from pyspark_kafkaproto.spark.exactly_once import exactly_once_writer
from pyspark_kafkaproto.spark.exactly_once_stream import exactly_once_stream_writer
from pyspark_kafkaproto.spark.write_options import WriteOptions
from tests.fault.dying import FailPoints, watch

_ATTEMPTS = 4
_SPECULATIVE = 7
_fork = multiprocessing.get_context("fork")


class Failed(Exception):
    """A process died, or what ran in it raised."""


class Query:
    """A query, or batch jobs, that write with `options`."""

    def __init__(self, options: WriteOptions, points: FailPoints, name: str, tasks: int) -> None:
        self.options = options
        self.points = points
        self.name = name
        self.tasks = tasks
        self.runs = 0
        self.attempts = 0
        self.why = ""
        self._forks = True

    @contextmanager
    def in_this_process(self) -> Iterator[None]:
        """Meanwhile nothing is forked, and nothing dies.

        What is imported and compiled at first use is then there for all processes forked later:
        without that each of them takes a third of a second of CPU for it.
        """
        self._forks = False
        try:
            yield
        finally:
            self._forks = True
            TaskContext._taskContext = None
            connections_for(self.options.producer.client).close()

    def micro_batch(self, batch: int, rows: Sequence[str]) -> bool:
        """One run of a micro-batch; whether it came through."""

        def make() -> bytes:
            return pickle.dumps(exactly_once_stream_writer(self.options))

        return self._run(batch, rows, make, lambda _: exactly_once_stream_writer(self.options))

    def job(self, rows: Sequence[str]) -> bool:
        """One batch query; whether it came through."""

        def make() -> bytes:
            return pickle.dumps(exactly_once_writer(self.options))

        return self._run(None, rows, make, pickle.loads)

    def _run(
        self,
        batch: int | None,
        rows: Sequence[str],
        make: Callable[[], bytes],
        remake: Callable[[bytes], Any],
    ) -> bool:
        self.runs += 1
        messages: list[Any] = []
        number = () if batch is None else (batch,)
        try:
            writer = self._process("driver", make)
            try:
                for partition in range(self.tasks):
                    own = rows[(partition + self.runs) % self.tasks :: self.tasks]
                    messages.append(self._task(writer, batch, partition, own))
                self._process("driver", lambda: remake(writer).commit(messages, *number))
            except Failed:
                if not self.points.is_dead:
                    self._process("driver", lambda: remake(writer).abort(messages, *number))
                raise
        except Failed as error:
            self.why = str(error)
            return False
        return True

    def _task(self, writer: bytes, batch: int | None, partition: int, rows: Sequence[str]) -> Any:
        def attempt(number: int) -> Any:
            self.attempts += 1
            return self._process(
                "task", lambda: self._write(writer, batch, partition, number, rows)
            )

        if partition == 0:
            with suppress(Failed):
                attempt(_SPECULATIVE)
        for number in range(_ATTEMPTS):
            try:
                return attempt(number)
            except Failed:
                if self.points.is_dead or number == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _write(
        self, writer: bytes, batch: int | None, partition: int, attempt: int, rows: Sequence[str]
    ) -> Any:
        properties = {"sql.streaming.queryId": self.name, "streaming.sql.batchId": str(batch)}
        context = TaskContext()
        context._partitionId, context._attemptNumber = partition, attempt
        context._taskAttemptId = self.attempts
        context._localProperties = {} if batch is None else properties
        TaskContext._setTaskContext(context)
        half = len(rows) // 2
        parts = [pa.record_batch({"value": part}) for part in (rows[:half], rows[half:]) if part]
        return pickle.loads(writer).write(iter(parts))

    def _process(self, role: str, work: Callable[[], Any]) -> Any:
        """What `work` gives in a process of its own."""
        if not self._forks:
            return work()
        here, there = _fork.Pipe(duplex=False)
        process = _fork.Process(target=self._inside, args=(role, work, there))
        process.start()
        there.close()
        try:
            is_well, result = here.recv()
        except EOFError:
            is_well, result = False, f"a process of the {role} died"
        here.close()
        process.join()
        if not is_well:
            raise Failed(result)
        return result

    def _inside(self, role: str, work: Callable[[], Any], there: Any) -> None:
        watch(self.points.folder, role)
        try:
            there.send((True, work()))
        except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
            there.send((False, traceback.format_exc()))
