"""The properties of a member of a share group (KIP-932): names and defaults are Kafka's own.

What other members may set, and share groups leave to the brokers, is refused as by the Java client:
each with where it is set instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.consumer_config import ConsumerConfig
from pyspark_kafkaproto.net.properties import (
    INT32_MAX,
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

_ACKNOWLEDGED: Final = "records are acknowledged one by one, and nothing is committed as an offset"
_OF_PARTITIONS: Final = "max.partition.fetch.bytes"
_HEARTBEATS: Final = "the brokers say how often: group.share.%s.ms, or share.%s.ms of the group"
_NOT_HERE: Final = {
    "auto.offset.reset": "it is a configuration of the group: share.auto.offset.reset",
    "isolation.level": "it is a configuration of the group: share.isolation.level",
    "enable.auto.commit": _ACKNOWLEDGED,
    "auto.commit.interval.ms": _ACKNOWLEDGED,
    "group.instance.id": "share groups have no static members",
    "group.protocol": "share groups have a protocol of their own",
    "group.remote.assignor": "the brokers choose: group.share.assignors",
    "partition.assignment.strategy": "the brokers share partitions out: group.share.assignors",
    "session.timeout.ms": _HEARTBEATS % (("session.timeout",) * 2),
    "heartbeat.interval.ms": _HEARTBEATS % (("heartbeat.interval",) * 2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConfig:
    """How to be a member of a share group, and through which client. Times are seconds."""

    client: ClientConfig
    group_id: str = kafka_property("group.id", text, "")
    acknowledgement_mode: str = kafka_property(
        "share.acknowledgement.mode", one_of("implicit", "explicit"), "implicit"
    )
    acquire_mode: str = kafka_property(
        "share.acquire.mode", one_of("batch_optimized", "record_limit"), "batch_optimized"
    )
    max_poll_records: int = kafka_property("max.poll.records", whole_number(1, INT32_MAX), 500)
    max_poll_interval_s: float = kafka_property("max.poll.interval.ms", seconds(), 300.0)
    fetch_min_bytes: int = kafka_property("fetch.min.bytes", whole_number(0, INT32_MAX), 1)
    fetch_max_wait_s: float = kafka_property("fetch.max.wait.ms", seconds(0), 0.5)

    @classmethod
    def parse(cls, properties: Mapping[str, object], prefix: str = "") -> ShareConfig:
        """Read Kafka's properties, the client's among them; `prefix` stands before names in errors.

        Raises:
            ConfigError: a value that cannot be used, no group.id, or what share groups leave to
                the brokers.
        """
        for name, instead in _NOT_HERE.items():
            if name in properties:
                allowed = f"not in a share group: {instead}"
                raise ConfigError(prefix + name, properties[name], allowed)
        values, others = read_fields(cls, properties, prefix)
        parsed = cls(client=ClientConfig.parse(others, prefix, names_of(cls)), **values)
        if not parsed.group_id:
            allowed = "required: the share group to be a member of"
            raise ConfigError(prefix + "group.id", None, allowed)
        if _OF_PARTITIONS in properties:
            why = "a share group's fetch has one bound for all partitions, fetch.max.bytes"
            warn_once(_log, f"client property {prefix}{_OF_PARTITIONS} has no effect: {why}")
        return parsed

    @property
    def is_explicit(self) -> bool:
        """Whether each record is acknowledged by name."""
        return self.acknowledgement_mode == "explicit"

    @property
    def takes_few(self) -> bool:
        """Whether max.poll.records is never exceeded, at the price of batches that are shared."""
        return self.acquire_mode == "record_limit"

    @property
    def member(self) -> ConsumerConfig:
        """The same for whoever keeps a membership."""
        return ConsumerConfig(
            client=self.client,
            group_id=self.group_id,
            group_protocol="consumer",
            max_poll_interval_s=self.max_poll_interval_s,
        )
