"""How to reach the cluster, from flags, a client.properties file, and the environment.

A flag goes before the file, the file before the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig, ConsumerConfig, ProducerConfig
from pyspark_kafkaproto.net.properties import names_of
from pyspark_kafkaproto.net.properties_file import read_properties
from pyspark_kafkaproto.net.secret import HIDDEN

FILE_VARIABLE = "KAFKAPROTO_CLIENT_PROPERTIES"
SERVERS = "bootstrap.servers"

# Properties that have a flag of their own.
FLAGS = {SERVERS: "--bootstrap-servers", "capture.to": "--capture-to"}
_PROPERTIES = {*names_of(ClientConfig), *names_of(ConsumerConfig), *names_of(ProducerConfig)}


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
        ConfigError: nothing says where the cluster is, a file or pair cannot be read, or two flags
            say the same.
    """
    found = dict(_from_environment(environ))
    named = environ.get(FILE_VARIABLE)
    if file is not None:
        found |= read_properties(file, "--config-file")
    elif named:
        found |= read_properties(Path(named), FILE_VARIABLE)
    flags = list(map(_pair, pairs))
    names = [name for name, _ in flags] + [SERVERS] * bool(servers)
    for name in names:
        if names.count(name) > 1:
            also = f" or by {FLAGS[name]}" if name in FLAGS else ""
            raise ConfigError("--property", name, f"expected each KEY once{also}")
    found |= dict(flags)
    if servers == "":  # of a variable that is not set: another cluster is not meant
        raise ConfigError("--bootstrap-servers", servers, "expected host:port,…")
    found |= {SERVERS: servers} if servers else {}
    if not found.get(SERVERS):
        raise ConfigError(
            SERVERS,
            None,
            "say where the cluster is: --bootstrap-servers host:port, --config-file "
            "client.properties, or KAFKA_BOOTSTRAP_SERVERS in the environment",
        )
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
