"""The producer's properties as values: names, meanings and checks are Kafka's own.

What both a reader and a writer need (brokers, time-outs, security) is in `ClientConfig`; this is
what a producer needs beside it. Where a default is not the Java client's, the field says why.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.config import MIB, ClientConfig
from pyspark_kafkaproto.net.properties import (
    INT32_MAX,
    INT64_MAX,
    boolean,
    kafka_property,
    names_of,
    one_of,
    read_fields,
    seconds,
    text,
    warn_once,
    whole_number,
)

_log = logging.getLogger(__name__)

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# The least and the most of the codecs that have levels (KIP-390).
_LEVELS: Final = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131072, 22)}
_DEFAULT_OF_GZIP: Final = -1  # also Kafka's own default of its level: whoever copies all has it

# Every client has them, and who writes does without. Where a load test reads, too, they count.
_OF_READERS: Final = (
    "client.rack",
    "isolation.level",
    "check.crcs",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
)
_ACKS: Final = {"0": 0, "1": 1, "-1": -1, "all": -1}
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
# A broker keeps the last five batches of a producer, to know a repeated one by (KIP-98).
_MOST_IN_FLIGHT_IDEMPOTENT: Final = 5

BY_KEY: Final = ("murmur2", "consistent_random")
ROUND_ROBIN: Final = "round_robin"
STICKY: Final = "sticky"
PARTITIONERS: Final = (*BY_KEY, ROUND_ROBIN, STICKY)


def _acks(name: str, text: str) -> int:
    found = _ACKS.get(text.strip().lower())
    if found is None:
        raise ConfigError(name, text, "expected all, -1, 0 or 1")
    return found


def _level(codec: str) -> Any:
    return kafka_property(f"compression.{codec}.level", whole_number(*_LEVELS[codec]))


def _gzip_level(name: str, text: str) -> int | None:
    least, most = _LEVELS["gzip"]
    if text.strip() == str(_DEFAULT_OF_GZIP):
        return None
    try:
        return whole_number(least, most)(name, text)
    except ConfigError as error:
        raise ConfigError(name, text, f"{error.allowed}, or {_DEFAULT_OF_GZIP}") from error


def _java_class(name: str, text: str) -> None:
    # In an option of Spark's it is `kafka.partitioner`: without that nothing would come of it.
    ours = name.removesuffix(".class")
    allowed = f"a Java class cannot be used here: give {ours}, {' or '.join(PARTITIONERS)}"
    raise ConfigError(name, text, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """How to write, and through which client. Times are seconds, sizes bytes."""

    client: ClientConfig
    acks: int = kafka_property("acks", _acks, -1)
    compression_type: str = kafka_property("compression.type", one_of(*_CODECS), "none")
    gzip_level: int | None = kafka_property("compression.gzip.level", _gzip_level)
    lz4_level: int | None = _level("lz4")
    zstd_level: int | None = _level("zstd")
    # The Java client's are 16 KiB and 5 ms, for rows that come one by one while somebody waits.
    # Here they come thousands at a time, and what counts is the last one: larger batches compress
    # better and cost broker and readers less. Below the 1 MiB that brokers accept by default.
    batch_size: int = kafka_property("batch.size", whole_number(0, INT32_MAX), 512 << 10)
    linger_s: float = kafka_property("linger.ms", seconds(0, is_long=True), 1.0)
    max_request_size: int = kafka_property("max.request.size", whole_number(100, INT32_MAX), MIB)
    max_in_flight: int = kafka_property(_IN_FLIGHT, whole_number(1, INT32_MAX), 5)
    delivery_timeout_s: float = kafka_property("delivery.timeout.ms", seconds(), 120.0)
    metadata_max_age_s: float = kafka_property(
        "metadata.max.age.ms", seconds(0, is_long=True), 300.0
    )
    retries: int = kafka_property("retries", whole_number(0, INT32_MAX), INT32_MAX)
    enable_idempotence: bool = kafka_property("enable.idempotence", boolean, True)
    buffer_memory: int = kafka_property("buffer.memory", whole_number(1, INT64_MAX), 32 * MIB)
    # The name is librdkafka's. The Java client has class names here, which mean nothing to us.
    partitioner: str = kafka_property("partitioner", one_of(*PARTITIONERS), "murmur2")
    ignores_keys: bool = kafka_property("partitioner.ignore.keys", boolean, False)
    transactional_id: str | None = kafka_property("transactional.id", text)
    # None is as long as the broker allows; who dies in the midst of one holds up readers that long.
    transaction_timeout_s: float | None = kafka_property("transaction.timeout.ms", seconds(), 60.0)
    partitioner_class: None = kafka_property("partitioner.class", _java_class)

    @classmethod
    def parse(cls, properties: Mapping[str, object], prefix: str = "") -> ProducerConfig:
        """Read Kafka's properties, the client's among them; `prefix` stands before names in errors.

        As in the Java client, what was not asked for gives way: without `enable.idempotence` itself
        other properties may switch it off, with it they are refused.

        Raises:
            ConfigError: a value that cannot be used, or properties that contradict each other.
        """
        values, others = read_fields(cls, properties, prefix)
        parsed = cls(client=ClientConfig.parse(others, prefix, names_of(cls)), **values)
        parsed = _with_time_enough(parsed, prefix, properties)
        if parsed.ignores_keys:
            parsed = _without_keys(parsed, prefix, properties)
        if parsed.transactional_id is not None:
            parsed = _transactional(parsed, prefix)
        is_asked = "enable.idempotence" in properties or parsed.transactional_id is not None
        return _idempotent_or_not(parsed, prefix, is_asked=is_asked)

    @classmethod
    def of_producer(cls, given: Mapping[str, object] | ProducerConfig) -> ProducerConfig:
        """`given`, or what its properties say; those without an effect are named."""
        if isinstance(given, ProducerConfig):
            return given
        parsed = cls.parse(given)
        parsed.name_idle(given, in_transactions=parsed.transactional_id is not None)
        return parsed

    def check_without_transactions(self) -> None:
        """Refuse a transactional id, for whoever begins no transactions.

        Raises:
            ConfigError: there is one.
        """
        if self.transactional_id is not None:
            why = "nothing is written in transactions here: leave it out"
            raise ConfigError("transactional.id", self.transactional_id, why)

    def name_idle(self, given: Collection[str], *, in_transactions: bool) -> None:
        """Warn of what was given, by the names in `given`, and changes nothing of what is written.

        Java's producer, and so Spark's own sink, passes over it.
        """
        codec = self.compression_type
        idle = dict.fromkeys(_OF_READERS, "it is for reading")
        for other in _LEVELS.keys() - {codec}:
            why = f"{self.client.named('compression.type')} is {codec}"
            idle[f"compression.{other}.level"] = why
        if not in_transactions:
            idle["transaction.timeout.ms"] = "nothing is written in transactions"
        for name in given:
            if name in idle:
                said = f"client property {self.client.named(name)} has no effect on what is written"
                warn_once(_log, f"{said}: {idle[name]}")

    @property
    def least_delivery_s(self) -> float:
        """The time for one request: delivery.timeout.ms is as long or longer."""
        return self.linger_s + self.client.request_timeout_s

    @property
    def level(self) -> int | None:
        """The level of the codec in use; None for the codec's default."""
        levels = {"gzip": self.gzip_level, "lz4": self.lz4_level, "zstd": self.zstd_level}
        return levels.get(self.compression_type)

    @property
    def codec(self) -> int:
        """Kafka's number of the codec."""
        return _CODECS.index(self.compression_type)


def _with_time_enough(
    config: ProducerConfig, prefix: str, given: Collection[str]
) -> ProducerConfig:
    """What of linger and the time for delivery was not given makes room for the other."""
    least_s = config.least_delivery_s
    if config.delivery_timeout_s >= least_s:
        return config
    if "delivery.timeout.ms" not in given:
        return replace(config, delivery_timeout_s=least_s)
    needed = f"{prefix}request.timeout.ms"
    if "linger.ms" in given:
        needed = f"{prefix}linger.ms + {needed}"
    else:
        # Ours is far longer than Java's, which takes what there is room for without it.
        least_s = config.client.request_timeout_s
        if config.delivery_timeout_s >= least_s:
            return replace(config, linger_s=config.delivery_timeout_s - least_s)
    raise ConfigError(
        f"{prefix}delivery.timeout.ms",
        round(config.delivery_timeout_s * 1000),
        f"expected at least {needed}, {least_s * 1000:.0f}",
    )


def _without_keys(config: ProducerConfig, prefix: str, given: Collection[str]) -> ProducerConfig:
    """What Java's own partitioner does then; with a class of its user's that property is no matter.

    Here it would be: who names a partitioner that goes by keys wants something else.
    """
    if config.partitioner not in BY_KEY:
        return config
    if "partitioner" in given:
        reason = f"{prefix}partitioner={config.partitioner} goes by keys: leave one of them out"
        raise ConfigError(f"{prefix}partitioner.ignore.keys", "true", reason)
    return replace(config, partitioner=STICKY)


def _transactional(config: ProducerConfig, prefix: str) -> ProducerConfig:
    """What a transactional id needs."""
    if not config.transactional_id:
        raise ConfigError(f"{prefix}transactional.id", "", "expected a name, or to be left out")
    if not config.enable_idempotence:
        reason = "transactions need idempotence: leave it out, or set it to true"
        raise ConfigError(f"{prefix}enable.idempotence", "false", reason)
    return config


def _idempotent_or_not(config: ProducerConfig, prefix: str, *, is_asked: bool) -> ProducerConfig:
    """What idempotence needs; what was not asked for gives way."""
    in_flight = config.max_in_flight
    needs = (
        ("acks", config.acks, config.acks == -1, "all"),
        ("retries", config.retries, config.retries > 0, "1 or more"),
        (_IN_FLIGHT, in_flight, in_flight <= _MOST_IN_FLIGHT_IDEMPOTENT, "5 or less"),
    )
    for name, value, is_met, needed in needs:
        if config.enable_idempotence and not is_met:
            if is_asked:
                reason = f"with enable.idempotence=true expected {needed}"
                raise ConfigError(prefix + name, value, reason)
            config = replace(config, enable_idempotence=False)
    return config
