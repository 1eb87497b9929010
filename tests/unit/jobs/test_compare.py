"""The comparison's arguments and what it prints, without Spark."""

import io
import json
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto import OffsetRange, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.exit_codes import exit_code_of
from pyspark_kafkaproto.jobs import compare as job
from pyspark_kafkaproto.spark import comparing
from pyspark_kafkaproto.spark.comparing import Comparison, Digest, Side
from tests.fake_broker import FakeCluster

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
RANGES = (OffsetRange("a", 0, 0, 2), OffsetRange("a", 1, 0, 5))


def comparison(theirs):
    ours = {A0: Digest(2, 0, 1, 77), A1: Digest(5, 0, 4, 88)}
    return Comparison(RANGES, (Side("kafkaproto", ours, 0.5), Side("kafka", theirs, 2.0)))


def test_the_same_is_told_with_rows_and_speed():
    result = comparison({A0: Digest(2, 0, 1, 77), A1: Digest(5, 0, 4, 88)})
    assert result.is_same
    assert job.as_text(result).splitlines() == [
        "source      rows          seconds  rows/s",
        "kafkaproto  7             0.50     14",
        "kafka       7             2.00     4",
        "the same rows in 2 partitions",
    ]
    shown = job.as_json(result)
    assert (shown["same"], shown["differing"]) == (True, [])
    assert shown["kafka"] == {"rows": 7, "seconds": 2.0, "rows_per_s": 3.5}


def test_one_partition_is_singular():
    sides = tuple(Side(source, {A0: Digest(2, 0, 1, 77)}, 1.0) for source in comparing.SOURCES)
    shown = job.as_text(Comparison(RANGES[:1], sides))
    assert shown.endswith("the same rows in 1 partition")


@pytest.mark.parametrize(
    "theirs",
    [{A0: Digest(2, 0, 1, 77)}, {A0: Digest(2, 0, 1, 77), A1: Digest(5, 0, 4, 89)}],
)
def test_what_differs_is_named_with_both_sides(theirs):
    result = comparison(theirs)
    assert result.differing == [A1]
    assert "a-1 differs:\n  kafkaproto  Digest(rows=5" in job.as_text(result)
    assert job.as_json(result)["differing"] == [["a", 1]]


def test_a_run_that_read_other_rows_is_told_though_another_was_faster():
    result = comparison(comparison({}).ours.digests)
    lost = Side("kafkaproto", {A0: Digest(1, 0, 0, 70), A1: Digest(5, 0, 4, 88)}, 0.7)
    again = Comparison(RANGES, (lost, *result.sides))
    assert again.ours.seconds == 0.5
    assert again.differing == [A0]
    assert [line.split()[:2] for line in job.as_text(again).splitlines()[-3:]] == [
        ["kafkaproto", "Digest(rows=1,"],
        ["kafkaproto", "Digest(rows=2,"],
        ["kafka", "Digest(rows=2,"],
    ]


def test_exit_code_says_whether_rows_are_the_same(monkeypatch, capsys):
    results = [comparison({}), comparison(comparison({}).ours.digests)]
    monkeypatch.setattr(job, "_session", lambda given: None)
    monkeypatch.setattr(job, "find_ranges", lambda options: [])
    monkeypatch.setattr(job, "compare", lambda spark, options, **_: results.pop())
    words = ["--bootstrap-servers", "b:9092", "--option", "subscribe=a"]
    assert job.main([*words, "--json"]) == 0
    assert job.main(words) == 3
    assert '"same": true' in capsys.readouterr().out


def test_wrong_options_are_refused_before_spark_starts(monkeypatch, capsys):
    monkeypatch.setattr(job, "_session", lambda given: pytest.fail("Spark was started"))
    words = ["--bootstrap-servers", "b:9092", "--option", "subscribe=a"]
    assert job.main([*words, "--option", "startingOffsets=soon"]) == exit_code_of(
        ConfigError("startingOffsets", "soon", "")
    )
    assert "startingOffsets" in capsys.readouterr().err


@pytest.mark.parametrize("runs", ["0", "-1", "many"])
def test_without_a_run_nothing_is_called_the_same(runs, monkeypatch, capsys):
    monkeypatch.setattr(job, "_session", lambda given: pytest.fail("Spark was started"))
    with pytest.raises(SystemExit) as ended:
        job.main(["--bootstrap-servers", "b:9092", "--option", "subscribe=a", "--runs", runs])
    assert ended.value.code == 2
    assert f"--runs: expected a whole number, 1 or more, not '{runs}'" in capsys.readouterr().err


def test_whoever_compares_nothing_is_told_so():
    options = {"kafka.bootstrap.servers": "b:9092", "subscribe": "a"}
    with pytest.raises(ConfigError, match="option 'runs' is 0: expected 1 or more"):
        comparing.compare(None, options, runs=0)


def test_a_broker_that_says_nothing_is_waited_for_aloud(brokers, moment, capsys):
    brokers.on("ApiVersions", moment)
    servers = {"kafka.bootstrap.servers": brokers.bootstrap_servers}
    assert job.find_ranges(servers | {"subscribe": "a"})[0].stop == 30
    assert capsys.readouterr().err == (
        f"no broker has answered yet, still trying {brokers.bootstrap_servers}\n"
    )


def test_what_goes_on_is_said_beside_the_output(brokers, monkeypatch, capsys):
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    monkeypatch.setattr(job, "_session", lambda given: session)
    sides = comparison(comparison({}).ours.digests)
    read = {"kafkaproto": sides.ours, "kafka": sides.theirs}
    monkeypatch.setattr(comparing, "_read", lambda spark, source, options: read[source])
    words = ["--bootstrap-servers", brokers.bootstrap_servers, "--option", "subscribe=a"]
    assert job.main([*words, "--runs", "2", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["same"]
    assert said.err.splitlines() == [
        "starting Spark",
        "warming up: a few rows with each source",
        "reading with kafkaproto, 1 of 2",
        "reading with kafka, 1 of 2",
        "reading with kafkaproto, 2 of 2",
        "reading with kafka, 2 of 2",
    ]


@pytest.mark.usefixtures("known_at_once")
def test_a_topic_that_is_not_there_is_said_before_spark_starts(brokers, monkeypatch, capsys):
    monkeypatch.setattr(job, "_session", lambda given: pytest.fail("Spark was started"))
    words = ["--bootstrap-servers", brokers.bootstrap_servers, "--option", "subscribe=oders"]
    assert job.main(words) != 0
    assert "oders" in capsys.readouterr().err


@pytest.fixture
def brokers():
    """a-0 has 30 records, a-1 none, a-2 and a-3 have 10."""
    with FakeCluster({"a": 4}) as fake:
        fake.logs["a", 0].fill(3)
        fake.logs["a", 2].fill(1)
        fake.logs["a", 3].fill(1)
        yield fake


def test_both_sources_read_a_row_of_a_few_partitions_before_anything_is_timed(
    brokers, monkeypatch, capsys
):
    calls = []

    def compare(spark, options, *, runs=1, **_):
        calls.append((dict(options), runs))
        return comparison(comparison({}).ours.digests)

    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    monkeypatch.setattr(job, "_session", lambda given: session)
    monkeypatch.setattr(job, "compare", compare)
    servers = {"kafka.bootstrap.servers": brokers.bootstrap_servers}
    words = ["--bootstrap-servers", brokers.bootstrap_servers, "--option", "subscribe=a"]
    assert job.main([*words, "--option", "startingOffsets=latest-5", "--runs", "3"]) == 0
    (first, once), whole = calls
    ranges = json.loads(first.pop("offsetRanges"))
    assert ranges == [["a", 0, 25, 26], ["a", 2, 5, 6]]
    assert (first, once) == (servers | {"failOnDataLoss": "false"}, 1)
    assert whole == (servers | {"subscribe": "a", "startingOffsets": "latest-5"}, 3)


def test_where_there_is_nothing_to_read_nothing_is_warmed_up(brokers, monkeypatch):
    assign = {"assign": '{"a": [1]}', "kafka.bootstrap.servers": brokers.bootstrap_servers}
    ranges = job.find_ranges(assign)
    assert ranges == []
    monkeypatch.setattr(job, "compare", lambda *_: pytest.fail("something was read"))
    job.warm_up(None, assign, ranges)


def test_options_come_from_a_file_and_arguments(tmp_path, monkeypatch):
    file = tmp_path / "options.json"
    file.write_text('{"subscribe": "a", "kafka.client.id": "me", "minPartitions": 3}')
    words = ["--options", str(file), "--option", "subscribe=a,b", "--bootstrap-servers", "b:9092"]
    expected = {
        "kafka.client.id": "me",
        "kafka.bootstrap.servers": "b:9092",
        "subscribe": "a,b",
        "minPartitions": "3",
    }
    assert job.read_options(job._parse(words)) == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
    assert job.read_options(job._parse(["--options", "-", *words[2:]])) == expected


def test_what_cannot_be_read_is_refused_without_a_secret(tmp_path):
    file = tmp_path / "options.json"
    for text in ("hunter2", '["hunter2"]'):
        file.write_text(text)
        with pytest.raises(ConfigError, match="expected JSON") as caught:
            job.read_options(job._parse(["--options", str(file)]))
        assert "hunter2" not in str(caught.value)
    file.write_bytes(b"\xff")
    for path in (file, tmp_path / "nowhere.json"):
        with pytest.raises(ConfigError, match=rf"--options.*{path}.*expected a file"):
            job.read_options(job._parse(["--options", str(path)]))
    with pytest.raises(ConfigError, match="KEY=VALUE") as caught:
        job.read_options(job._parse(["--option", "=hunter2"]))
    assert "hunter2" not in str(caught.value)
