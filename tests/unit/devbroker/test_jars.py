import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyspark_kafkaproto.devbroker import jars
from pyspark_kafkaproto.devbroker.files import FileLock
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed


@pytest.fixture
def told():
    return []


def test_version_is_the_asked_one_or_the_default():
    assert jars.resolve_version(None) == jars.DEFAULT_VERSION
    assert jars.resolve_version("3.9.1") == "3.9.1"


@pytest.mark.parametrize("version", ["3.8.1", "2.13.0", "latest", "4.3", "4.3.0-rc1"])
def test_versions_that_cannot_run_are_refused(version):
    with pytest.raises(ConfigError, match=r"option 'version' is .*expected"):
        jars.resolve_version(version)


def test_versions_compare_by_number():
    assert jars.version_key("4.10.0") > jars.version_key("4.9.1")


def test_kafka_home_decides_the_version(fake_kafka):
    assert jars.resolve_version(None) == "4.3.0"
    assert jars.resolve_version("4.3.0") == "4.3.0"
    with pytest.raises(ConfigError, match=r"'3\.9\.1': KAFKA_HOME .* holds 4\.3\.0"):
        jars.resolve_version("3.9.1")


def test_kafka_home_without_kafka_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="expected a folder with libs/kafka_2"):
        jars.resolve_version(None)


def test_kafka_home_is_used_and_nothing_fetched(fake_kafka, fake_java):
    parts = jars.class_path("4.3.0", with_tools=True).split(os.pathsep)
    assert parts[-1] == f"{fake_kafka}/libs/*"
    assert fake_java.calls() == []


def test_pysparks_logging_comes_first(fake_kafka):
    names = [Path(part).name for part in jars.class_path("4.3.0").split(os.pathsep)]
    starts = ["slf4j-api-", "log4j-slf4j2-impl-", "log4j-api-", "log4j-core-"]
    assert [name.startswith(start) for name, start in zip(names, starts, strict=False)] == [
        True
    ] * 4


@pytest.mark.slow
@pytest.mark.parametrize("has_csv", [False, True])
def test_tools_have_the_library_that_reads_csv(fake_java, tmp_path, told, has_csv):
    """The brokers of 4.4 do without: plans of offsets could not be exported."""
    broker = tmp_path / "cache" / "pyspark-kafkaproto" / "kafka_2.13-4.4.0"
    broker.mkdir(parents=True)
    (broker / "jackson-core-2.21.7.jar").touch()
    if has_csv:
        (broker / "jackson-dataformat-csv-2.21.7.jar").touch()
    path = jars.class_path("4.4.0", with_tools=True, report=told.append)
    csv = broker.with_name("jackson-dataformat-csv-2.21.7-alone")
    assert (f"{csv}/*" in path.split(os.pathsep)) == (not has_csv)
    assert csv.is_dir() == (not has_csv)
    assert "jackson-dataformat-csv" not in jars.class_path("4.4.0", report=told.append)


def test_a_fetch_fills_the_users_cache_and_reports_each_jar(fake_java, tmp_path, told):
    folder = jars.fetch("kafka_2.13", "4.3.0", report=told.append)
    assert folder == tmp_path / "cache" / "pyspark-kafkaproto" / "kafka_2.13-4.3.0"
    assert [path.name for path in folder.iterdir()] == ["kafka_2.13-4.3.0.jar"]
    assert told[-1] == "fetched kafka_2.13 (1 of 1)"
    # what Ivy itself kept is gone: every jar is there once
    assert sorted(path.name for path in folder.parent.iterdir()) == ["fetch.lock", folder.name]


@pytest.mark.slow
def test_what_is_there_is_not_fetched_again(fake_java, told):
    jars.fetch("kafka-tools", "4.3.0", transitive=False, report=told.append)
    told.clear()
    jars.fetch("kafka-tools", "4.3.0", transitive=False, report=told.append)
    assert told == []
    assert len(fake_java.calls()) == 1


@pytest.mark.slow
def test_with_and_without_dependencies_are_kept_apart(fake_java, told):
    alone = jars.fetch("kafka-clients", "4.3.0", transitive=False, report=told.append)
    whole = jars.fetch("kafka-clients", "4.3.0", report=told.append)
    assert alone != whole


@pytest.mark.slow
def test_a_failed_fetch_gives_ivys_reason_and_leaves_no_folder(fake_java, tmp_path, told):
    fake_java.behave("crash")
    with pytest.raises(DevBrokerFailed, match=r"kafka_2\.13;9\.9\.9: not found") as failed:
        jars.fetch("kafka_2.13", "9.9.9", report=told.append)
    assert "KAFKA_HOME" in str(failed.value)
    assert not list((tmp_path / "cache" / "pyspark-kafkaproto").glob("kafka_*"))


@pytest.mark.slow
def test_what_a_killed_fetch_left_does_not_stop_the_next(fake_java, tmp_path, told):
    part = tmp_path / "cache" / "pyspark-kafkaproto" / "kafka_2.13-4.3.0.part"
    part.mkdir(parents=True)
    (part / "half.jar").touch()
    folder = jars.fetch("kafka_2.13", "4.3.0", report=told.append)
    assert [path.name for path in folder.iterdir()] == ["kafka_2.13-4.3.0.jar"]


@pytest.mark.parametrize("in_the_way", ["pyspark-kafkaproto", "pyspark-kafkaproto/fetch.lock/x"])
def test_a_cache_that_cannot_be_written_is_named(tmp_path, told, in_the_way):
    file = tmp_path / "cache" / in_the_way
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(ConfigError, match=r"XDG_CACHE_HOME.*expected a folder to write to: "):
        jars.fetch("kafka_2.13", "4.3.0", report=told.append)


@pytest.mark.slow
def test_ivy_settings_and_proxies_are_passed_on(fake_java, monkeypatch, told):
    monkeypatch.setenv("KAFKAPROTO_IVY_SETTINGS", "https://example.org/ivysettings.xml")
    jars.fetch("kafka_2.13", "4.3.0", report=told.append)
    assert "https://example.org/ivysettings.xml" in fake_java.calls()[0]


@pytest.mark.slow
def test_who_comes_second_waits_and_takes_what_was_fetched_meanwhile(fake_java, tmp_path, told):
    cache = tmp_path / "cache" / "pyspark-kafkaproto"
    cache.mkdir(parents=True)
    first = FileLock(cache / "fetch.lock")
    assert first.try_acquire()
    waiting = threading.Event()

    def report(line):
        told.append(line)
        waiting.set()

    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(jars.fetch, "kafka_2.13", "4.3.0", report=report)
        assert waiting.wait(10)
        (cache / "kafka_2.13-4.3.0").mkdir()
        first.release()
        assert second.result(10) == cache / "kafka_2.13-4.3.0"
    assert told == ["waiting for another process that is fetching Kafka"]
    assert fake_java.calls() == []
