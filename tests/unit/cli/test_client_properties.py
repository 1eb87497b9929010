"""Where the cluster is: flags over the file over the environment; Kafka's format of files."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cli.client_properties import gather, parse_properties
from pyspark_kafkaproto.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b c  ", {"a": "b c  "}),
        ("a:b\nc d\ne", {"a": "b", "c": "d", "e": ""}),
        ("# no\n! no\n\n   \na=b", {"a": "b"}),
        ("a=one \\\n   two \\\n  three\nb=c", {"a": "one two three", "b": "c"}),
        ("a=\\\n# no comment here", {"a": "# no comment here"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\:b\\=c=\\u00fcx\\ty\\n", {"a:b=c": "üx\ty\n"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=b\r\nc=d", {"a": "b", "c": "d"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=end\\", {"a": "end"}),
        ("a=b\u2028c\x0bd\u00a0\fe", {"a": "b\u2028c\x0bd\u00a0\fe"}),
        ("\f a\f=\u00a0b\rc=d", {"a": "\u00a0b", "c": "d"}),
        ("", {}),
    ],
)
def test_kafkas_format(text, found):
    assert parse_properties(text) == found


def test_pem_text_in_a_file_is_whole():
    text = "ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\\n\\\n  MIIB==\\n\\\n  -----END"
    assert parse_properties(text)["ssl.truststore.certificates"].splitlines() == [
        "-----BEGIN CERTIFICATE-----",
        "MIIB==",
        "-----END",
    ]


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


def test_nothing_said_names_every_way_to_say_it():
    with pytest.raises(ConfigError, match=r"--bootstrap-servers.*--config-file.*KAFKA_BOOT"):
        gather({})


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
