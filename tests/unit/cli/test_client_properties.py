"""Where the cluster is: flags over the file over the environment."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cli.client_properties import gather
from pyspark_kafkaproto.errors import ConfigError


def test_flags_go_before_the_file_and_the_file_before_the_environment(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=file\nclient.rack=file\n")
    environ = {"KAFKA_BOOTSTRAP_SERVERS": "environ:1", "KAFKA_ISOLATION_LEVEL": "read_committed"}
    assert gather(environ) == {
        "bootstrap.servers": "environ:1",
        "isolation.level": "read_committed",
    }
    assert gather(environ | {"KAFKAPROTO_CLIENT_PROPERTIES": str(file)}) == {
        "bootstrap.servers": "file:1",
        "client.id": "file",
        "client.rack": "file",
        "isolation.level": "read_committed",
    }
    found = gather(environ, "flag:1", file, ["client.id=flag=x"])
    assert (found["bootstrap.servers"], found["client.id"]) == ("flag:1", "flag=x")


@pytest.mark.parametrize(
    ("servers", "pairs", "said"),
    [
        (None, ["client.id=a", "client.id=b"], "client.id': expected each KEY once"),
        ("b:1", ["bootstrap.servers=c:1"], "bootstrap.servers': .* or by --bootstrap-servers"),
        ("b:1", ["capture.to=a", "capture.to=b"], "capture.to': .* or by --capture-to"),
    ],
)
def test_what_flags_say_twice_is_refused(servers, pairs, said):
    """One of the two would be passed over without a word."""
    with pytest.raises(ConfigError, match=f"'--property' is '{said}"):
        gather({}, servers, None, pairs)


def test_nothing_said_names_every_way_to_say_it():
    with pytest.raises(ConfigError, match=r"--bootstrap-servers.*--config-file.*KAFKA_BOOT"):
        gather({})


def test_an_address_that_was_given_empty_does_not_lead_elsewhere():
    """`-b "$UNSET"` beside a variable of the environment."""
    with pytest.raises(ConfigError, match=r"--bootstrap-servers.*expected host:port"):
        gather({"KAFKA_BOOTSTRAP_SERVERS": "environ:1"}, "")


def test_file_that_cannot_be_read_and_pair_without_a_key(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        gather({}, file=tmp_path / "missing")
    for pair in ("=hunter2", "ssl.key.password:hunter2", "hunter2"):
        with pytest.raises(ConfigError, match="expected KEY=VALUE") as caught:
            gather({}, "b:1", pairs=[pair])
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["bootstrap.servers", "linger.ms", "group.id", "ssl.key.password"])
def test_a_property_that_lost_its_value_is_named(name):
    with pytest.raises(ConfigError, match=f"is '{name}': expected KEY=VALUE: -X {name}=…"):
        gather({}, "b:1", pairs=[name])
