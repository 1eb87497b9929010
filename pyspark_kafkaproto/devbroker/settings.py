"""What a node of the embedded broker is told: its server.properties.

Every node is broker and controller in one (KRaft, a static quorum of voters). Pure: values in, text
out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.ports import LOOPBACK
from pyspark_kafkaproto.net.properties_file import read_properties
from pyspark_kafkaproto.net.security import PLAINTEXT, PROTOCOLS

CONTROLLER = "CONTROLLER"

# listener name -> port, the controller's included
Ports = Mapping[str, int]

_ADVERTISED = re.compile(r"[\w.-]+(?::[0-9]{1,5})?")
_DEFAULTS = Path(__file__).with_name("broker.properties")
_OURS = {
    "advertised.listeners": "listeners=",
    "controller.listener.names": "nodes=",
    "controller.quorum.voters": "nodes=",
    "inter.broker.listener.name": "listeners=",
    "listener.security.protocol.map": "listeners=",
    "listeners": "listeners=",
    "log.dir": "data_dir=",
    "log.dirs": "data_dir=",
    "node.id": "nodes=",
    "process.roles": "nodes=",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a caller chose: how many nodes, which listeners, which properties on top.

    `listeners` maps a listener's name to its security protocol; the first is the one that brokers
    use among themselves and the one that clients are told of. `advertised` maps a listener's
    name to the `host` or `host:port` that clients are sent to instead of where it listens.
    """

    nodes: int
    listeners: Mapping[str, str]
    properties: Mapping[str, str]
    advertised: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ConfigError("nodes", self.nodes, "expected 1 or more")
        if not self.listeners:
            raise ConfigError("listeners", self.listeners, "expected a listener or more")
        for name, protocol in self.listeners.items():
            if name == CONTROLLER or protocol not in PROTOCOLS:
                allowed = f"a name other than {CONTROLLER} and one of {', '.join(PROTOCOLS)}"
                raise ConfigError("listeners", f"{name}: {protocol}", f"expected {allowed}")
        _refuse_ours(self.properties)
        for name, address in self.advertised.items():
            if name not in self.listeners or not _ADVERTISED.fullmatch(address):
                allowed = f"one of {', '.join(self.listeners)}, with host or host:port"
                raise ConfigError("advertised", f"{name}: {address}", f"expected {allowed}")

    @property
    def first_listener(self) -> str:
        """The listener that clients are told of."""
        return next(iter(self.listeners))

    @property
    def listener_names(self) -> list[str]:
        """Every listener of a node, the controller's last."""
        return [*self.listeners, CONTROLLER]

    def server_properties(self, node_id: int, ports: Sequence[Ports], log_dir: Path) -> str:
        """The text of the server.properties of node `node_id` (1, 2, …) of `ports`."""
        own = ports[node_id - 1]
        voters = ((n, each[CONTROLLER]) for n, each in enumerate(ports, start=1))
        replicas = min(3, self.nodes)
        protocols = {**self.listeners, CONTROLLER: PLAINTEXT}
        return _render(
            _replication(replicas)
            | read_properties(_DEFAULTS)
            | _properties_of_environment()
            | dict(self.properties)
            | {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{p}" for n, p in voters),
                "controller.listener.names": CONTROLLER,
                "inter.broker.listener.name": self.first_listener,
                "listeners": _addresses(self.listener_names, own),
                "advertised.listeners": self._advertised_addresses(own),
                "listener.security.protocol.map": ",".join(
                    f"{n}:{p}" for n, p in protocols.items()
                ),
                "log.dirs": str(log_dir),
            }
        )

    def _advertised_addresses(self, ports: Ports) -> str:
        addresses = []
        for name in self.listeners:
            host, colon, port = self.advertised.get(name, LOOPBACK).partition(":")
            addresses.append(f"{name}://{host}:{port if colon else ports[name]}")
        return ",".join(addresses)


def _replication(replicas: int) -> dict[str, str]:
    in_sync = str(min(2, replicas))
    topics = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    factors = {f"{topic}.replication.factor": str(replicas) for topic in topics}
    factors["default.replication.factor"] = str(replicas)
    return factors | {f"{topic}.min.isr": in_sync for topic in topics[1:]}


def _properties_of_environment() -> dict[str, str]:
    variable = "KAFKAPROTO_BROKER_PROPERTIES"
    path = os.environ.get(variable)
    properties = read_properties(Path(path), variable) if path else {}
    _refuse_ours(properties)
    return properties


def _refuse_ours(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key in _OURS:
            raise ConfigError("properties", key, f"set by DevBroker itself: use {_OURS[key]}")


def _addresses(names: Sequence[str], ports: Ports) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{ports[name]}" for name in names)


def _render(properties: Mapping[str, str]) -> str:
    # Java reads the file as Latin-1 with escapes, and JSON's escapes are among Java's: a backslash
    # stays one, a line break does not end the value, a folder may be called jürgen.
    return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in properties.items())
