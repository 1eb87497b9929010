"""Kafka's client properties as values: names and meanings are Kafka's own.

A `ClientConfig` is frozen and hashable: connections are cached by it, whole, so that two
configurations never share one. Which property exists, how it is read and what it allows stands in
one table.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.properties import (
    ALIKE,
    INT32_MAX,
    boolean,
    kafka_property,
    meant,
    names_of,
    one_of,
    read_fields,
    seconds,
    seconds_or_never,
    text,
    warn_once,
    whole_number,
    words,
)
from pyspark_kafkaproto.net.retry import Backoff
from pyspark_kafkaproto.net.security import SecurityConfig, is_security_property, refuse_unknown
from pyspark_kafkaproto.net.transport import Endpoint

_log = logging.getLogger(__name__)

MIB = 1 << 20
# The Java client's, which read like others that are here.
_JAVA_ALONE = frozenset(
    {"fetch.min.bytes", "metadata.max.idle.ms", "socket.connection.setup.timeout.max.ms"}
)


def _servers(name: str, given: str) -> tuple[Endpoint, ...]:
    parts = words(name, given)
    if not parts:
        raise ConfigError(name, given, "expected host:port[,host:port…], for example broker-1:9092")
    return tuple(Endpoint.parse(part, name) for part in parts)


def _first_wait_s(name: str, first_s: float, most_s: float) -> float:
    """The first of waits between tries; one that is more than their most is that, as in Java."""
    if first_s > most_s:
        more = f"{name}.ms is {round(first_s * 1000)}, more than {name}.max.ms"
        warn_once(_log, f"client property {more}: each wait is {round(most_s * 1000)} ms")
    return min(first_s, most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig(SecurityConfig):
    """Everything about how to reach a cluster and how to read from it.

    Times are seconds, sizes bytes. Defaults are the Java client's but for those that say why not.
    """

    bootstrap_servers: tuple[Endpoint, ...] = kafka_property("bootstrap.servers", _servers, ())
    client_id: str = kafka_property("client.id", text, "pyspark-kafkaproto")
    client_rack: str = kafka_property("client.rack", text, "")
    # Ours: a folder in which each process writes its frames as pcapng, secrets left out.
    capture_to: str = kafka_property("capture.to", text, "")
    # Ours: whether errors come with the last frames before them; see cluster/capturing.py.
    capture_errors: bool = kafka_property("capture.errors", boolean, True)
    request_timeout_s: float = kafka_property("request.timeout.ms", seconds(), 30.0)
    default_api_timeout_s: float = kafka_property("default.api.timeout.ms", seconds(), 60.0)
    connection_setup_timeout_s: float = kafka_property(
        "socket.connection.setup.timeout.ms", seconds(is_long=True), 10.0
    )
    retry_backoff_s: float = kafka_property("retry.backoff.ms", seconds(0, is_long=True), 0.1)
    retry_backoff_max_s: float = kafka_property(
        "retry.backoff.max.ms", seconds(0, is_long=True), 1.0
    )
    # Kept apart from the waits between tries: several readers in a worker share a broker's waits.
    reconnect_backoff_s: float = kafka_property(
        "reconnect.backoff.ms", seconds(0, is_long=True), 0.05
    )
    reconnect_backoff_max_s: float = kafka_property(
        "reconnect.backoff.max.ms", seconds(0, is_long=True), 1.0
    )
    connections_max_idle_s: float = kafka_property(
        "connections.max.idle.ms", seconds_or_never, 540.0
    )
    isolation_level: str = kafka_property(
        "isolation.level", one_of("read_uncommitted", "read_committed"), "read_uncommitted"
    )
    check_crcs: bool = kafka_property("check.crcs", boolean, True)
    # The Java client asks for 1 MiB a partition and 50 MiB in all. A large answer is decoded
    # while it comes, so that its size costs no time, but all of it is memory. What other sizes
    # give: docs/benchmarks.md.
    fetch_max_bytes: int = kafka_property("fetch.max.bytes", whole_number(1, INT32_MAX), 8 * MIB)
    max_partition_fetch_bytes: int = kafka_property(
        "max.partition.fetch.bytes", whole_number(1, INT32_MAX), 8 * MIB
    )
    # The name is librdkafka's: the Java client has no cap of its own.
    receive_message_max_bytes: int = kafka_property(
        "receive.message.max.bytes", whole_number(1000, INT32_MAX), 256 * MIB
    )

    @classmethod
    def parse(
        cls, properties: Mapping[str, object], prefix: str = "", beside: Collection[str] = ()
    ) -> ClientConfig:
        """Read Kafka's properties; `prefix` (such as `kafka.`) is put before names in errors.

        `beside` are the names that somebody else reads: one of them may have been meant.

        Unknown properties are named once per process in a warning: the Java client does the same.
        Unknown ones of security are errors: a misspelt one must not make a connection less safe
        than its owner believes.

        Raises:
            ConfigError: a value that cannot be used, or no bootstrap.servers.
        """
        values, others = read_fields(cls, properties, prefix)
        for name in others:
            if is_security_property(name):
                refuse_unknown(prefix, name)
                continue
            known = [*names_of(cls), *beside]
            hint = "" if name in _JAVA_ALONE else meant(prefix, name, known, ALIKE)
            said = f"client property {prefix}{name} is not known here: it has no effect{hint}"
            warn_once(_log, said)
        if not values.get("bootstrap_servers"):
            wanted = "bootstrap.servers"
            given = [name for name in others if meant("", name, [wanted], ALIKE)]
            hint = f" (there is {given[0]!r})" if given else ""
            raise ConfigError(prefix + wanted, None, f"required: host:port[,host:port…]{hint}")
        # As in the Java client, where the first wait alone is given, all of them are so long.
        if "reconnect_backoff_s" in values:
            values.setdefault("reconnect_backoff_max_s", values["reconnect_backoff_s"])
        config = cls(prefix=prefix, **values)
        retry_s, retry_most_s = config.retry_backoff_s, config.retry_backoff_max_s
        again_s, again_most_s = config.reconnect_backoff_s, config.reconnect_backoff_max_s
        config = replace(
            config,
            retry_backoff_s=_first_wait_s(f"{prefix}retry.backoff", retry_s, retry_most_s),
            reconnect_backoff_s=_first_wait_s(f"{prefix}reconnect.backoff", again_s, again_most_s),
        )
        config.check_security([name for name in properties if name not in others])
        return config

    @property
    def backoff(self) -> Backoff:
        """The waits between tries."""
        return Backoff(self.retry_backoff_s, self.retry_backoff_max_s)

    @property
    def reconnect_backoff(self) -> Backoff:
        """How long a broker that could not be reached is left alone."""
        return Backoff(self.reconnect_backoff_s, self.reconnect_backoff_max_s)

    @property
    def is_read_committed(self) -> bool:
        """Whether aborted and open transactions are left out."""
        return self.isolation_level == "read_committed"
