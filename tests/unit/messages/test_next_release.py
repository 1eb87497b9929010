"""The move to the next Kafka: what is said of its messages, and the pin."""

import importlib
from pathlib import Path
from zipfile import ZipFile

import pytest

TOOLS = Path(__file__).parents[3] / "tools"

PING = """
{ "apiKey": %(key)d, "type": "request", "listeners": ["broker"], "name": "%(name)sRequest",
  "validVersions": "%(versions)s", "flexibleVersions": "1+",
  "fields": [ { "name": "Hosts", "type": "[]Host", "versions": "0+", "fields": [
      { "name": "Port", "type": "%(port)s", "versions": "0+" } ] } %(more)s ] }
"""
MORE = ', { "name": "Reason", "type": "string", "versions": "2+", "nullableVersions": "2+" }'
NOW = {"key": 5, "name": "Ping", "versions": "0-1", "port": "int16", "more": ""}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("next_kafka_release")


@pytest.fixture
def changes(tool, tmp_path):
    """Says what changes from one set of definitions to another."""

    def read(name, *definitions):
        with ZipFile(tmp_path / name, "w") as jar:
            for number, facts in enumerate(definitions):
                jar.writestr(f"common/message/Message{number}.json", PING % facts)
        return tool.read_messages(tmp_path / name, tmp_path / name)

    return lambda now, then: list(
        tool.describe_changes(read("now.jar", *now), read("then.jar", *then))
    )


def test_the_same_messages_are_no_change(changes):
    assert changes([NOW], [NOW]) == []


def test_new_versions_fields_and_types_are_said(changes):
    then = {**NOW, "versions": "0-2", "port": "uint16", "more": MORE}
    assert changes([NOW], [then]) == [
        "PingRequest: versions 0 to 1, flexible from 1 -> versions 0 to 2, flexible from 1",
        "PingRequest.Hosts.Port: int16 0+ -> uint16 0+",
        "PingRequest.Reason: new, string 2+ nullable 2+",
    ]


def test_new_dropped_and_renamed_apis_are_said(changes):
    other = {**NOW, "key": 9, "name": "Pong"}
    assert changes([NOW], [NOW, other]) == [
        "PongRequest: new, versions 0 to 1, flexible from 1",
    ]
    assert changes([NOW, other], [{**other, "name": "Echo"}]) == [
        "PingRequest: dropped, versions 0 to 1, flexible from 1",
        "PongRequest: now called EchoRequest",
    ]


def test_the_pin_is_replaced_and_nothing_else(tool):
    source = (TOOLS / "kafka_jars.py").read_text(encoding="utf-8")
    pinned = tool.with_pin(source, tool.Jar("9.9.9", "ab" * 32))
    assert f'NEWEST = Jar("9.9.9", "{"ab" * 32}")' in pinned
    assert f'OLDEST = Jar("{tool.OLDEST.version}"' in pinned
    assert tool.with_pin(pinned, tool.NEWEST) == source
    with pytest.raises(ValueError, match="0 lines pin NEWEST"):
        tool.with_pin("", tool.NEWEST)


def test_a_jar_of_another_name_or_version_is_refused(tool, monkeypatch, tmp_path):
    other = tmp_path / "kafka-clients-9.9.8.jar"
    other.write_bytes(b"")
    monkeypatch.setattr("sys.argv", ["next_kafka_release.py", "9.9.9", "--jar", str(other)])
    with pytest.raises(SystemExit, match=r"expected kafka-clients-9\.9\.9\.jar"):
        tool.main()
