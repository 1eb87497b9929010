"""A cluster in the middle of a rolling upgrade: each node is of a version of its own."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.devbroker.jars import class_path, version_key
from pyspark_kafkaproto.devbroker.settings import Ports


class MixedBroker(DevBroker):
    """Nodes 1, 2, … of `versions`, which speak among themselves as the oldest of these does.

    That one formats the storage: metadata.version is its own, as before an upgrade is finished.
    """

    def __init__(self, versions: Sequence[str]) -> None:
        super().__init__(version=min(versions, key=version_key), nodes=len(versions))
        self.versions = dict(enumerate(versions, start=1))

    def upgrade(self, node_id: int, version: str) -> None:
        """Stop a node as Kafka wants to be ended, and start it with another version."""
        self.versions[node_id] = version
        self.restart(node_id)

    def restart(self, node_id: int = 1) -> None:
        """Start a killed node on the same ports, or stop and start a running one."""
        node = self._node(node_id)
        node.stop()
        node.launch(self._jars(node_id), detached=False)
        self._wait([node])

    def _jars(self, node_id: int) -> str:
        return class_path(self.versions[node_id], report=self._report)

    def _start_on(self, ports: Sequence[Ports], jars: str, *, detached: bool) -> None:
        self._cluster = self._prepare(ports, jars, detached=detached)
        self._nodes = self._cluster.nodes(self._folder)
        for node in self._nodes:
            node.forget_log()
            node.launch(self._jars(node.node_id), detached=detached)
        self._wait(self._nodes)
