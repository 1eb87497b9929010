"""The main job, as spark-submit runs it: what it reads, keeps, commits and prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.jobs import offset_ranges

pytestmark = pytest.mark.spark

# The job with a commit that fails: what a broker does to a group that has members.
FAILING = """
from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.jobs import offset_ranges

def refuse(self, group, offsets):
    raise RuntimeError("the commit fails")

KafkaCluster.set_consumer_offsets = refuse
offset_ranges.main()
"""

# The job, and once more: that one finds nothing left, and needs no JVM of its own.
TWICE = """
from pyspark_kafkaproto.jobs import offset_ranges

offset_ranges.main()
print("once more")
offset_ranges.main()
"""


@pytest.fixture
def run_job(broker, tmp_path):
    def run(script: Path, topic: str, group: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, str(script), "--topic", topic),
                *("--group", group, "--out", str(tmp_path / "out")),
            ],
            env=os.environ
            | {
                "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false "
                "--conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 "
                "pyspark-shell",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run


def test_a_failed_commit_loses_nothing_and_doubles_nothing(
    broker, new_topic, new_name, run_job, tmp_path
):
    # Nothing that Spark could take for a pattern, or the file system for another folder.
    topic, group = new_topic(partitions=2), f"../{new_name('group')}*{{[a]"
    job = Path(offset_ranges.__file__)
    failing, twice = tmp_path / "failing.py", tmp_path / "twice.py"
    failing.write_text(FAILING)
    twice.write_text(TWICE)

    broker.produce(topic, [f"k{n % 3}:value {n}" for n in range(30)], key_separator=":")
    first = run_job(job, topic, group)
    assert "read 30 records" in first.stdout, first.stderr[-3000:]
    committed = committed_offsets(broker, topic, group)
    assert sum(committed.values()) == 30

    broker.produce(topic, ["k0:more", "k1:more"], key_separator=":")
    failed = run_job(failing, topic, group)
    assert failed.returncode != 0
    assert "the commit fails" in failed.stderr
    assert committed_offsets(broker, topic, group) == committed

    broker.produce(topic, ["k2:even more"], key_separator=":")
    again = run_job(twice, topic, group)
    third, _, last = again.stdout.partition("once more\n")
    assert "read 3 records" in third, again.stderr[-3000:]
    assert sum(committed_offsets(broker, topic, group).values()) == 33
    kept = [
        (row["partition"], row["offset"])
        for folder in (tmp_path / "out" / topic / quote(group, safe="")).glob("ranges-*")
        for row in pq.read_table(folder, columns=["partition", "offset"]).to_pylist()
    ]
    assert len(kept) == len(set(kept)) == 33

    assert again.returncode == 0, again.stderr[-3000:]
    assert "read 0 records" in last
    header, *lines = last.strip().splitlines()[-3:]
    assert header.split() == ["Group", "Topic", "Partition", "Offset", "LogSize", "Lag"]
    assert [line.split()[-1] for line in lines] == ["0", "0"]


def committed_offsets(broker, topic: str, group: str) -> dict[object, int]:
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        return cluster.get_consumer_offsets(group, cluster.get_partitions({topic}))
