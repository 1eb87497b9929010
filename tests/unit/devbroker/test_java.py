import os
import signal
import subprocess
import sys
import time

import pytest

from pyspark_kafkaproto.devbroker import java
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed


def test_java_home_comes_before_path(fake_java):
    assert java.find_java() == str(fake_java.home / "bin" / "java")


def _java_that_says(version, folder):
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("shown", "found"),
    [('openjdk version "11.0.2" 2019-01-15', 11), ('java version "1.8.0_392"', 8)],
)
def test_java_older_than_17_is_named_with_what_to_install(monkeypatch, tmp_path, shown, found):
    _java_that_says(shown, tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    install = f"is Java {found}: install Java 17.*openjdk-17-jre.*brew"
    with pytest.raises(DevBrokerFailed, match=install):
        java.find_java()


def test_java_from_17_on_is_taken(monkeypatch, tmp_path):
    _java_that_says('openjdk version "21" 2023-09-19', tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find_java() == f"{tmp_path}/bin/java"


def test_a_java_that_is_none_is_named(monkeypatch, tmp_path):
    _java_that_says("No Java runtime present", tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DevBrokerFailed, match="does not tell its version: install"):
        java.find_java()


def test_no_java_at_all_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevBrokerFailed, match="no java on PATH and JAVA_HOME is not set: install"):
        java.find_java()


def test_java_home_without_java_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DevBrokerFailed, match="cannot be run"):
        java.find_java()


def test_proxies_become_javas_own_properties():
    environ = {
        "https_proxy": "http://proxy.example.org:3128",
        "HTTP_PROXY": "10.0.0.7",
        "no_proxy": "localhost, .example.org",
    }
    assert java.proxy_options(environ) == [
        "-Dhttp.proxyHost=10.0.0.7",
        "-Dhttp.proxyPort=80",
        "-Dhttps.proxyHost=proxy.example.org",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.example.org",
    ]


def test_no_proxy_alone_is_nothing_to_say():
    assert java.proxy_options({"no_proxy": "localhost"}) == []


def test_a_proxy_with_a_password_is_refused_without_showing_it():
    with pytest.raises(ConfigError) as refused:
        java.proxy_options({"https_proxy": "http://anna:s3cret@proxy:3128"})
    assert "s3cret" not in str(refused.value)
    assert "KAFKAPROTO_IVY_SETTINGS" in str(refused.value)


def test_heap_is_kafkas_own_variable_or_small(monkeypatch):
    assert java.heap_options() == ["-Xmx512m"]
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xms1g -Xmx1g")
    assert java.heap_options() == ["-Xms1g", "-Xmx1g"]


@pytest.mark.slow
def test_a_program_that_does_not_end_is_killed_and_named(fake_java, tmp_path):
    fake_java.behave("silent")
    properties = tmp_path / "server.properties"
    properties.write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    with pytest.raises(DevBrokerFailed, match=r"kafka\.Kafka .*: not done within 0\.5 s"):
        java.run_java(["kafka.Kafka", str(properties)], timeout_s=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["java.run_java(['a.Tool'], timeout_s=60)", "jars.fetch('kafka_2.13', '4.3.0')"]
)
def test_what_a_killed_run_had_java_do_ends_with_it(fake_java, call):
    """Two Ivys would write the same jars, a tool would fill or format the next run's folder."""
    fake_java.behave("silent")
    program = f"from pyspark_kafkaproto.devbroker import jars, java; {call}"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", program], env=environ) as starter:
        while (orphan := fake_java.hanging()) is None:
            assert starter.poll() is None
            time.sleep(0.02)
        starter.kill()
    try:
        assert orphan.wait(10)
    finally:
        orphan.signal(signal.SIGKILL)
