"""What is known of the broker of a data folder from outside: is it running, where does it answer.

Any process may ask. `cluster.json` is written at each start, each node's folder names its process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark_kafkaproto.devbroker.files import read_json, write_whole
from pyspark_kafkaproto.devbroker.node import Node, stop_nodes
from pyspark_kafkaproto.devbroker.settings import Ports
from pyspark_kafkaproto.net.ports import LOOPBACK, answers


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The content of `cluster.json`: what has to be the same at the next start, and the ports."""

    cluster_id: str
    version: str
    listeners: Mapping[str, str]
    properties: Mapping[str, str]
    ports: Sequence[Ports]
    detached: bool
    advertised: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data_dir: Path) -> ClusterFile | None:
        """The file of a data folder; None when no cluster was ever made there."""
        return read_json(data_dir / "cluster.json", cls)

    def write(self, data_dir: Path) -> None:
        """Replace the file of a data folder, in one step."""
        write_whole(data_dir / "cluster.json", json.dumps(asdict(self), indent=2))

    def nodes(self, data_dir: Path) -> list[Node]:
        """The cluster's nodes, in the order of their ids."""
        return [Node(n, data_dir / f"node-{n}") for n in range(1, len(self.ports) + 1)]

    def addresses(self, listener: str | None = None) -> str:
        """`host:port,…` of one listener, the first one if none is named."""
        name = listener or next(iter(self.listeners))
        return ",".join(f"{LOOPBACK}:{ports[name]}" for ports in self.ports)


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that runs on a data folder, whoever started it."""

    data_dir: Path
    bootstrap_servers: str
    version: str
    pids: tuple[int, ...]
    detached: bool
    listeners: Mapping[str, str] = field(default_factory=dict)  # name to `host:port,…`

    @property
    def is_whole(self) -> bool:
        """Whether every node answers: not so when its start was killed half way."""
        addresses = [address.rpartition(":") for address in self.bootstrap_servers.split(",")]
        return len(self.pids) == len(addresses) and all(
            answers(host, int(port)) for host, _, port in addresses
        )

    def stop(self) -> None:
        """Stop every node; returns when the processes have ended."""
        cluster = ClusterFile.read(self.data_dir)
        if cluster is not None:
            stop_nodes(cluster.nodes(self.data_dir))


def find_running(data_dir: Path) -> RunningBroker | None:
    """The broker that runs on `data_dir`; None when there is none."""
    cluster = ClusterFile.read(data_dir)
    if cluster is None:
        return None
    processes = [node.process for node in cluster.nodes(data_dir)]
    pids = tuple(process.pid for process in processes if process)
    if not pids:
        return None
    listeners = {name: cluster.addresses(name) for name in cluster.listeners}
    return RunningBroker(
        data_dir, cluster.addresses(), cluster.version, pids, cluster.detached, listeners
    )
