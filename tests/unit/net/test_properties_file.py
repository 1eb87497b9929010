"""Kafka's format of files, as Java reads it."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.properties_file import parse_properties, read_properties


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
        ("a=\\uD83D\\uDE00 \\uDE00\\uD83D", {"a": "\U0001f600 \ude00\ud83d"}),
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


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        read_properties(tmp_path / "nowhere")


def test_a_file_that_is_not_utf_8_is_read_as_java_reads_it(tmp_path):
    file = tmp_path / "client.properties"
    for encoding in ("utf-8", "latin-1"):
        file.write_bytes("# für den Nachtlauf\nssl.key.password=pässwörd\n".encode(encoding))
        assert read_properties(file) == {"ssl.key.password": "pässwörd"}
