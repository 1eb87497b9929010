"""Kafka's client properties as values: names and meanings are Kafka's own.

A `ClientConfig` is frozen and hashable: connections are cached by it, whole, so that two
configurations never share one. Which property exists, how it is read and what it allows stands in
one table.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.retry import Backoff
from pyspark_kafkaproto.net.transport import Endpoint

_log = logging.getLogger(__name__)
_warned: set[str] = set()

MIB = 1 << 20

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def _servers(name: str, text: str) -> tuple[Endpoint, ...]:
    parts = [part for part in (piece.strip() for piece in text.split(",")) if part]
    if not parts:
        raise ConfigError(name, text, "expected host:port[,host:port…], for example broker-1:9092")
    return tuple(Endpoint.parse(part, name) for part in parts)


def _whole_number(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        allowed = f"expected a whole number from {least} to {most}"
        # Only what Java reads as an int: Python's int() takes 1_000, too.
        digits = _WHOLE_NUMBER.fullmatch(text.strip())
        if digits is None or not least <= int(digits[0]) <= most:
            raise ConfigError(name, text, allowed)
        return int(digits[0])

    return read


def _seconds(least_ms: int = 1) -> Callable[[str, str], float]:
    read_ms = _whole_number(least_ms, 2**31 - 1)

    def read(name: str, text: str) -> float:
        return read_ms(name, text) / 1000

    return read


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ConfigError(name, text, f"expected {' or '.join(allowed)}")
        return text.strip().lower()

    return read


def _boolean(name: str, text: str) -> bool:
    return _one_of("true", "false")(name, text) == "true"


def _text(name: str, text: str) -> str:
    del name
    return text.strip()


def _security_protocol(name: str, text: str) -> str:
    if text.strip().upper() != "PLAINTEXT":
        raise ConfigError(name, text, "only PLAINTEXT is supported by this version")
    return "PLAINTEXT"


def _property(name: str, read: Callable[[str, str], Any], default: Any = None) -> Any:
    """A field of ClientConfig read from Kafka's property `name`."""
    return field(default=default, metadata={"name": name, "read": read})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Everything about how to reach a cluster and how to read from it.

    Times are seconds, sizes bytes. Defaults are the Java client's but for those that say why not.
    """

    bootstrap_servers: tuple[Endpoint, ...] = _property("bootstrap.servers", _servers, ())
    client_id: str = _property("client.id", _text, "pyspark-kafkaproto")
    client_rack: str = _property("client.rack", _text, "")
    security_protocol: str = _property("security.protocol", _security_protocol, "PLAINTEXT")
    request_timeout_s: float = _property("request.timeout.ms", _seconds(), 30.0)
    default_api_timeout_s: float = _property("default.api.timeout.ms", _seconds(), 60.0)
    connection_setup_timeout_s: float = _property(
        "socket.connection.setup.timeout.ms", _seconds(), 10.0
    )
    retry_backoff_s: float = _property("retry.backoff.ms", _seconds(0), 0.1)
    retry_backoff_max_s: float = _property("retry.backoff.max.ms", _seconds(0), 1.0)
    isolation_level: str = _property(
        "isolation.level", _one_of("read_uncommitted", "read_committed"), "read_uncommitted"
    )
    check_crcs: bool = _property("check.crcs", _boolean, True)
    # The Java client asks for 1 MiB a partition and 50 MiB in all. What waits in the socket while a
    # block is decoded is one response: one that is larger than the socket holds makes the broker
    # wait, and is memory besides. What other sizes give: docs/benchmarks.md.
    fetch_max_bytes: int = _property("fetch.max.bytes", _whole_number(1, 2**31 - 1), 2 * MIB)
    max_partition_fetch_bytes: int = _property(
        "max.partition.fetch.bytes", _whole_number(1, 2**31 - 1), 2 * MIB
    )
    # The name is librdkafka's: the Java client has no cap of its own.
    receive_message_max_bytes: int = _property(
        "receive.message.max.bytes", _whole_number(1000, 2**31 - 1), 256 * MIB
    )

    @classmethod
    def parse(cls, properties: Mapping[str, object], prefix: str = "") -> ClientConfig:
        """Read Kafka's properties; `prefix` (such as `kafka.`) is put before names in errors.

        Unknown properties are named once per process in a warning: the Java client does the same.

        Raises:
            ConfigError: a value that cannot be used, or no bootstrap.servers.
        """
        table = {item.metadata["name"]: item for item in fields(cls)}
        values = {}
        for name, value in properties.items():
            if name in table:
                item = table[name]
                values[item.name] = item.metadata["read"](prefix + name, str(value))
            elif name not in _warned:
                _warned.add(name)
                _log.warning(
                    "client property %s%s is not known here: it has no effect", prefix, name
                )
        if not values.get("bootstrap_servers"):
            raise ConfigError(
                prefix + "bootstrap.servers", None, "required: host:port[,host:port…]"
            )
        return cls(**values)

    @property
    def backoff(self) -> Backoff:
        """The waits between tries."""
        return Backoff(self.retry_backoff_s, max(self.retry_backoff_s, self.retry_backoff_max_s))

    @property
    def is_read_committed(self) -> bool:
        """Whether aborted and open transactions are left out."""
        return self.isolation_level == "read_committed"
