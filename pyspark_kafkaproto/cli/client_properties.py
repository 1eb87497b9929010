"""How to reach the cluster, from flags, a client.properties file, and the environment.

A flag goes before the file, the file before the environment. The file is in Kafka's format: that of
java.util.Properties, so a line that ends with a backslash goes on, and PEM text fits in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig, ConsumerConfig, ProducerConfig
from pyspark_kafkaproto.net.properties import names_of
from pyspark_kafkaproto.net.secret import HIDDEN

FILE_VARIABLE = "KAFKAPROTO_CLIENT_PROPERTIES"
SERVERS = "bootstrap.servers"

_PROPERTIES = {*names_of(ClientConfig), *names_of(ConsumerConfig), *names_of(ProducerConfig)}
# A key ends at the first separator that has no backslash before it.
# Java's format knows three blanks and three ends of a line; all else belongs to a value.
_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(
    rf"(?P<key>(?:[^\\=:{_BLANKS}]|\\.)*)[{_BLANKS}]*[=:]?[{_BLANKS}]*(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<plain>.))", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def gather(
    environ: Mapping[str, str],
    servers: str | None = None,
    file: Path | None = None,
    pairs: Iterable[str] = (),
) -> dict[str, str]:
    """The client's properties from everywhere.

    Args:
        environ: KAFKA_BOOTSTRAP_SERVERS, KAFKA_SASL_JAAS_CONFIG …: each property that is known, in
            capitals; KAFKAPROTO_CLIENT_PROPERTIES names a file.
        servers: the flag for bootstrap.servers.
        file: the flag for a file.
        pairs: flags `key=value`.

    Raises:
        ConfigError: nothing says where the cluster is, or a file or pair cannot be read.
    """
    found = dict(_from_environment(environ))
    named = environ.get(FILE_VARIABLE)
    chosen = file or (Path(named) if named else None)
    found |= {} if chosen is None else read_properties(chosen)
    found |= dict(map(_pair, pairs))
    found |= {SERVERS: servers} if servers else {}
    if not found.get(SERVERS):
        raise ConfigError(
            SERVERS,
            None,
            "say where the cluster is: --bootstrap-servers host:port, --config-file "
            "client.properties, or KAFKA_BOOTSTRAP_SERVERS in the environment",
        )
    return found


def read_properties(path: Path) -> dict[str, str]:
    """The properties in a file of Kafka's format; ConfigError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("config file", str(path), f"cannot be read ({error})") from error
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """`key=value`, `key: value` or `key value`; `#` and `!` begin comments, backslashes escape."""
    found = {}
    for line in _whole_lines(text):
        match = _LINE.fullmatch(line)
        if match is not None:  # it matches whatever there is
            found[_unescaped(match["key"])] = _unescaped(match["value"])
    return found


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in names_of(ClientConfig):
        value = environ.get("KAFKA_" + name.upper().replace(".", "_"))
        if value:
            yield name, value


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals and text.strip() in _PROPERTIES:
        raise ConfigError("--property", text, f"expected KEY=VALUE: -X {text.strip()}=…")
    if not equals or not key.strip():
        # What was given may be a secret that lost its key.
        raise ConfigError("--property", HIDDEN, "expected KEY=VALUE: -X client.id=reports")
    return key.strip(), value


def _whole_lines(text: str) -> Iterator[str]:
    """Lines with those that go on after a backslash put together; no comments, no empty ones."""
    held = ""
    for line in _LINE_ENDS.split(text):
        stripped = line.lstrip(_BLANKS)
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        whole = held + stripped
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            held = whole[:-1]
        else:
            yield whole
            held = ""
    if held:
        yield held


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match["code"]:
            return chr(int(match["code"], 16))
        return _NAMED.get(match["plain"], match["plain"])

    return _ESCAPE.sub(plain, text)
