"""Configurations of topics, brokers and groups: what is set, where it comes from, and changing it.

A broker's own settings are asked of that broker, all others of any (KIP-133). Changes name what
changes and nothing else (IncrementalAlterConfigs, KIP-339). Values that a broker holds secret never
leave it: they are None here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster.asking import Question, ask, each_place
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.controller import controller_of
from pyspark_kafkaproto.cluster.given import check_map, checked_each
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topics import NO_SUCH_TOPIC
from pyspark_kafkaproto.cluster.topology import Topology, while_news_travels
from pyspark_kafkaproto.error_codes import INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from pyspark_kafkaproto.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pyspark_kafkaproto.net import Deadline, Endpoint

TYPE_NUMBERS: Final = {
    "topic": 2,
    "broker": 4,
    "broker-logger": 8,
    "client-metrics": 16,
    "group": 32,
}
_NAMES = {number: name for name, number in TYPE_NUMBERS.items()}
_OF_ONE_BROKER = ("broker", "broker-logger")
_WITH_ZOOKEEPER = "that keep their metadata in ZooKeeper, not in KRaft, have no such settings"
_WHO_LACKS = {
    "client-metrics": f"brokers {_WITH_ZOOKEEPER}",
    "group": f"brokers before Kafka 4.0, and those {_WITH_ZOOKEEPER}",
}

# Kafka's ConfigSource.
_SOURCES = {
    1: "topic",
    2: "dynamic broker",
    3: "dynamic default broker",
    4: "static broker",
    5: "default",
    6: "dynamic broker logger",
    7: "client metrics",
    8: "group",
}


class ConfigResource(NamedTuple):
    """What has a configuration.

    `type` is topic, broker, broker-logger, client-metrics or group; `name` the topic's, the
    broker's id as text ("" for the default of all brokers), and so on.
    """

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting; `value` is None where it is secret; `source` says who set it."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it for this resource or for its broker."""
        return self.source == "default"


class Change(Enum):
    """What to do with a setting; the numbers are the protocol's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of one setting.

    `value` is None for DELETE, which brings the default back; APPEND and SUBTRACT take members of a
    list (`cleanup.policy`).
    """

    name: str
    value: str | None = field(default=None, repr=False)
    change: Change = Change.SET

    def __post_init__(self) -> None:
        if (self.value is None) != (self.change is Change.DELETE):
            # The value may be a secret: it is not shown.
            raise ConfigError(self.name, self.change.name, "only DELETE goes without a value")


def describe_configs(
    router: Router, resources: Collection[ConfigResource], names: Collection[str] | None = None
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """The settings of each resource, by name.

    Args:
        router: whom to ask through.
        resources: whose.
        names: which; None: all. A resource that has no such setting has none of it.

    Raises:
        BrokerError: there is no such resource, or not now, or it may not be seen; `usable` has the
            others.
    """
    _check(resources)

    def make_request(part: list[ConfigResource]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsRequest.Resource(
                    resource_type=TYPE_NUMBERS[item.type],
                    resource_name=item.name,
                    configuration_keys=None if names is None else tuple(names),
                )
                for item in part
            )
        )

    question = Question("describe configs", make_request, lambda answer, _: _read_described(answer))
    return ask(router, question, resources, partial(_places, router))


def alter_configs(
    router: Router,
    changes: Mapping[ConfigResource, Collection[ConfigChange]],
    *,
    validate_only: bool = False,
) -> None:
    """Change settings, and leave all others as they are.

    Raises:
        BrokerError: a setting is not known or its value is refused; `usable` has the resources
            that are changed.
        ConfigError: a setting is to be changed twice.
    """
    check_map("changes", changes, "the changes of each resource", is_secret=True)
    _check(changes)
    for resource, each in changes.items():
        example = "ConfigChange(name, value)"
        option = f"changes of {resource}"
        check_each_once(checked_each(option, each, ConfigChange, example, is_secret=True))

    def make_request(part: list[ConfigResource]) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            resources=tuple(_to_alter(item, changes[item]) for item in part),
            validate_only=validate_only,
        )

    question = Question(
        "alter configs",
        make_request,
        lambda answer, _: _read_altered(answer),
        is_trial=validate_only,
    )
    change(router, question, changes, partial(_places, router))


def check_each_once(changes: Collection[ConfigChange]) -> None:
    """Refuse what brokers refuse, with fewer words: two changes of one setting.

    Raises:
        ConfigError: there are such.
    """
    seen: dict[str, ConfigChange] = {}
    for item in changes:
        if item.name in seen:
            both = f"{seen[item.name].change.name} and {item.change.name}"
            raise ConfigError(item.name, both, "expected one change of each setting")
        seen[item.name] = item


def _check(resources: Collection[ConfigResource]) -> None:
    for item in checked_each("resources", resources, ConfigResource, "ConfigResource(type, name)"):
        if item.type not in TYPE_NUMBERS:
            raise ConfigError("resource", item.type, f"expected one of {', '.join(TYPE_NUMBERS)}")
        if not isinstance(item.name, str):
            raise ConfigError(item.type, item.name, "expected a name, as text")
        if item.type in _OF_ONE_BROKER and item.name and not item.name.isdecimal():
            raise ConfigError(item.type, item.name, "expected a broker's id, such as 1")


def _places(
    router: Router, missing: set[ConfigResource], deadline: Deadline
) -> dict[ConfigResource, Endpoint | BrokerError]:
    """Who is asked: the broker itself about its own settings, else who answers for changes."""
    topology = router.topology((), deadline)
    return each_place(missing, partial(_place, topology))


def _place(topology: Topology, resource: ConfigResource) -> Endpoint:
    if resource.type in _OF_ONE_BROKER and resource.name:
        return topology.broker(int(resource.name)).endpoint
    return controller_of(topology)


def _to_alter(
    resource: ConfigResource, changes: Collection[ConfigChange]
) -> IncrementalAlterConfigsRequest.Resource:
    part = IncrementalAlterConfigsRequest.Resource
    return part(
        resource_type=TYPE_NUMBERS[resource.type],
        resource_name=resource.name,
        configs=tuple(
            part.Config(name=item.name, config_operation=item.change.value, value=item.value)
            for item in changes
        ),
    )


def _read_described(
    answer: DescribeConfigsResponse,
) -> dict[ConfigResource, dict[str, ConfigEntry] | BrokerError]:
    results: dict[ConfigResource, dict[str, ConfigEntry] | BrokerError] = {}
    for item in answer.results:
        resource = named_resource(item.resource_type, item.resource_name)
        error = _error(item.error_code, "DescribeConfigs", resource, item.error_message)
        results[resource] = error or {entry.name: _entry(entry) for entry in item.configs}
    return results


def _read_altered(
    answer: IncrementalAlterConfigsResponse,
) -> dict[ConfigResource, BrokerError | None]:
    results = {}
    for item in answer.responses:
        resource = named_resource(item.resource_type, item.resource_name)
        results[resource] = _error(
            item.error_code, "IncrementalAlterConfigs", resource, item.error_message
        )
    return results


def _entry(entry: DescribeConfigsResponse.Resource.Config) -> ConfigEntry:
    source = _SOURCES.get(entry.config_source, f"source {entry.config_source}")
    return ConfigEntry(entry.name, entry.value, source, entry.read_only, entry.is_sensitive)


def named_resource(number: int, name: str) -> ConfigResource:
    """A resource, of the type that has this number in the protocol."""
    return ConfigResource(_NAMES.get(number, f"type {number}"), name)


def _error(
    code: int, api: str, resource: ConfigResource, message: str | None
) -> BrokerError | None:
    if not code:
        return None
    text = NO_SUCH_TOPIC if code == UNKNOWN_TOPIC_OR_PARTITION else message or ""
    if code == INVALID_REQUEST and resource.type in _WHO_LACKS and resource.name:
        text = "; ".join(filter(None, (text, _WHO_LACKS[resource.type])))
    return while_news_travels(BrokerError(code, api, str(resource), text))
