"""SIGKILL of a streaming driver in every phase of a micro-batch: no row is lost, none is doubled.

A chain of runs from one checkpoint. Each is killed in the phase that it was told to stay in, with
its JVM and its Python processes; meanwhile records go on coming. That it was there is read from
what is left: the logs of offsets and of commits, and the application's own mark.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.fault.stream_app import COMMITTED, LOGGED, PHASES, WRITTEN
from tests.spark.streaming import numbered, put, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.fault

Row = tuple[int, int, bytes]  # partition, offset, value

SEED = 8
_STEP = 50
_PATIENCE_S = 120
# A JVM that lives for seconds is not worth being optimised.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Chain:
    """Runs of the application over one checkpoint, and what was written to its topic."""

    def __init__(self, servers: str, topic: str, folder: Path) -> None:
        self._servers = servers
        self._topic = topic
        self._folder = folder
        self.hits: Counter[str] = Counter()
        self.produced: set[str] = set()
        self._written: dict[int, list[Row]] = {}
        (folder / "marks").mkdir(parents=True)

    def kill_in(self, phase: str) -> None:
        """One run that ends in `phase`; records come before and after."""
        is_first = not self._logged("offsets")
        if not is_first:  # what comes before the start of the very first run is not read
            self.produce()
        with self._run(phase) as application:
            wait_until(f"phase {phase}", lambda: self._is_in(phase, application))
            os.killpg(application.pid, signal.SIGKILL)
        self._check_phase(phase)
        self.hits[phase] += 1
        print(f"killed: {phase}, batch {self._logged('offsets') - 1}", flush=True)
        if phase == WRITTEN:
            last = self._logged("offsets") - 1
            self._written[last] = self._rows()[last]
        self.produce()

    def finish(self) -> None:
        """A last run, to the end."""
        with self._run() as application:
            assert application.wait(_PATIENCE_S) == 0, self._log()

    def check_rows(self) -> None:
        """Each offset once in all batches, all values, and in each batch what it had before."""
        batches = self._rows()
        assert {batch: batches[batch] for batch in self._written} == self._written
        rows = [row for batch in batches.values() for row in batch]
        offsets = [(partition, offset) for partition, offset, _ in rows]
        assert sorted(set(offsets)) == sorted(offsets)
        assert sorted(value.decode() for *_, value in rows) == sorted(self.produced)

    def produce(self) -> None:
        start = len(self.produced)
        for partition in range(2):
            values = numbered(start + partition * _STEP, start + (partition + 1) * _STEP)
            put(self._servers, self._topic, partition, values)
            self.produced |= set(values)

    @contextmanager
    def _run(self, *phase: str) -> Iterator[subprocess.Popen[bytes]]:
        for mark in (self._folder / "marks").iterdir():
            mark.unlink()
        command = [sys.executable, "-m", "tests.fault.stream_app", self._servers, self._topic]
        with (self._folder / "log").open("wb") as log:
            application = subprocess.Popen(
                [*command, str(self._folder), *phase],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ
                | {"PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": _SHORT_LIFE},
                start_new_session=True,
            )
        try:
            yield application
        finally:
            # Not reaped yet, so the number is still its own.
            if application.poll() is None:
                os.killpg(application.pid, signal.SIGKILL)
            application.wait()

    def _is_in(self, phase: str, application: subprocess.Popen[bytes]) -> bool:
        assert application.poll() is None, self._log()
        if phase == COMMITTED:
            return self._committed_offsets() == len(self.produced)
        return any((self._folder / "marks").glob(f"{phase}-*"))

    def _check_phase(self, phase: str) -> None:
        """That the kill has hit what it was to hit."""
        logged, committed = self._logged("offsets"), self._logged("commits")
        if phase == COMMITTED:
            assert committed == logged
        else:
            (mark,) = (self._folder / "marks").glob(f"{phase}-*")
            assert int(mark.name.removeprefix(f"{phase}-")) == logged - 1 == committed

    def _committed_offsets(self) -> int:
        """How many records the batches have taken that are committed; the topic was empty first."""
        last = self._logged("commits") - 1
        if last < 0:
            return 0
        *_, text = (self._folder / "checkpoint" / "offsets" / str(last)).read_text().splitlines()
        return sum(json.loads(text)[self._topic].values())

    def _logged(self, log: str) -> int:
        """How many batches are in a log of the checkpoint."""
        return len(list((self._folder / "checkpoint" / log).glob("[0-9]*")))

    def _rows(self) -> dict[int, list[Row]]:
        """The rows of each batch that is written whole."""
        return {
            int(folder.name): sorted(
                (row["partition"], row["offset"], row["value"])
                for file in folder.glob("*.parquet")
                for row in pq.read_table(file).to_pylist()
            )
            for folder in (self._folder / "rows").glob("[0-9]*")
            if (folder / "_SUCCESS").exists()
        }

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]


def run_chain(broker, topic, folder, rounds):
    chain = Chain(broker.bootstrap_servers, topic, folder)
    rng = random.Random(SEED)
    # The very first batch only logs where the query starts.
    schedule = [LOGGED, *rng.sample(PHASES[1:], len(PHASES) - 1)]
    for _ in range(rounds - 1):
        schedule += rng.sample(PHASES, len(PHASES))
    for phase in schedule:
        chain.kill_in(phase)
    chain.finish()
    chain.check_rows()
    print(f"kills: {dict(chain.hits)}; {len(chain.produced)} records, each read once")
    return chain.hits


def test_killed_driver_loses_and_doubles_nothing(broker, new_topic, tmp_path):
    hits = run_chain(broker, new_topic(partitions=2), tmp_path, 1)
    assert set(hits) == set(PHASES)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_driver_loses_and_doubles_nothing_for_long(broker, new_topic, tmp_path):
    hits = run_chain(broker, new_topic(partitions=2), tmp_path, 5)
    assert min(hits[phase] for phase in PHASES) >= 5
