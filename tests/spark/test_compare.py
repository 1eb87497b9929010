"""`kafkaproto compare`, on a real topic, and on one that the two would read differently."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.jobs.compare import as_text
from pyspark_kafkaproto.records import NewRecord
from pyspark_kafkaproto.spark import comparing
from pyspark_kafkaproto.spark.comparing import compare, row_hash
from tests.spark.writing import produce

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def topic(broker, new_topic):
    name = new_topic(partitions=3)
    for partition in (0, 2):
        records = [NewRecord(b"v%d" % at, b"k", at, [(b"h", b"")]) for at in range(100)]
        produce(broker.bootstrap_servers, name, partition, records)
    return name


def test_the_same_rows_are_found_the_same(spark, broker, topic):
    options = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "latest-60",
        "maxPartitions": "2",
    }
    result = compare(spark, options, runs=2)
    assert result.is_same, as_text(result)
    assert (result.ours.rows, result.theirs.rows) == (120, 120)
    assert "the same rows" in as_text(result)


def test_other_rows_are_found_and_the_partition_named(spark, broker, topic, monkeypatch):
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    read = comparing._read

    def lossy(session, source, given):
        starts = {topic: {"0": 0, "1": 0, "2": 1}}
        changed = {"startingoffsets": json.dumps(starts)} if source == "kafka" else {}
        return read(session, source, given | changed)

    monkeypatch.setattr(comparing, "_read", lossy)
    result = compare(spark, options)
    assert [str(item) for item in result.differing] == [f"{topic}-2"]
    assert f"{topic}-2 differs" in as_text(result)


def test_what_is_ours_alone_makes_no_difference(spark, broker, topic):
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    for mine in ({"mode": "PERMISSIVE"}, {"columnNameOfCorruptRecord": "bad"}):
        assert compare(spark, options | mine).is_same


def test_several_ranges_of_a_partition_are_not_compared(spark, broker, topic):
    ranges = json.dumps([[topic, 0, 0, 10], [topic, 0, 20, 30]])
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "offsetRanges": ranges}
    with pytest.raises(ConfigError, match=f"'{topic}-0': it has several ranges"):
        compare(spark, options)


def test_a_null_is_another_thing_wherever_it_stands(spark):
    """Spark's own hash passes over NULLs, and would find all rows of a line alike."""
    for alike in (
        [(b"a", None, []), (None, b"a", [])],
        [(b"a", b"b", None), (b"a", b"b", [])],
        [(b"a", b"b", [("h", None), ("h", b"")]), (b"a", b"b", [("h", b""), ("h", None)])],
    ):
        schema = "key binary, value binary, headers array<struct<key string, value binary>>"
        rows = spark.createDataFrame(alike, schema)
        hashes = {row[0] for row in rows.select(row_hash(rows)).collect()}
        assert len(hashes) == 2, alike


def test_the_command_prints_json_and_its_exit_code_says_it(broker, topic):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pyspark_kafkaproto.jobs.compare", "--master", "local[2]"),
            *("--bootstrap-servers", broker.bootstrap_servers, "--json"),
            *("--option", f"subscribe={topic}"),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown["same"] is True
    assert shown["kafka"]["rows"] == shown["kafkaproto"]["rows"] == 200
