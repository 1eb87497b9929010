"""A cluster of the old kind: one ZooKeeper, brokers of Kafka 3.9, none of them a KRaft controller.

The last line of Kafka that runs so. ZooKeeper's jars are among what its broker needs.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.devbroker.jars import class_path
from pyspark_kafkaproto.devbroker.java import SHORT_RUN, heap_options, logging_options, start_java
from pyspark_kafkaproto.devbroker.logs import telling
from pyspark_kafkaproto.devbroker.processes import start_watchdog
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.ports import LOOPBACK, free_ports, wait_until_answers
from pyspark_kafkaproto.net.security import PLAINTEXT

VERSION = "3.9.1"
_START_S = 60.0
_STOP_S = 20.0
_OFTEN = {
    # A killed broker is missed when its session has timed out (18 s by default).
    "zookeeper.session.timeout.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class ZooKeeperCluster(KafkaTools):
    """Brokers 1, 2, … that keep what they know in a ZooKeeper; Kafka's tools pointed at them.

    Args:
        nodes: how many brokers; internal topics have as many replicas, at most three.
        protocol: of their listener, which they use among themselves, too.
        properties: theirs, on top.
    """

    def __init__(
        self,
        nodes: int = 2,
        *,
        protocol: str = PLAINTEXT,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("", version=VERSION)
        self._folder = Path(tempfile.mkdtemp(prefix="kafkaproto-zookeeper-"))
        self._zookeeper_port, *self._ports = free_ports(1 + nodes)
        replicas = str(min(3, nodes))
        topics = ("default", "offsets.topic", "transaction.state.log")
        factors = {f"{topic}.replication.factor": replicas for topic in topics}
        least = {"transaction.state.log.min.isr": "1"}
        self._protocol = protocol
        self._properties = _OFTEN | factors | least | dict(properties or {})
        self._java: dict[int, _Java] = {}  # 0 is ZooKeeper

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…` of all brokers."""
        return ",".join(map(self.address, range(1, len(self._ports) + 1)))

    def address(self, node_id: int) -> str:
        """`host:port` of a broker."""
        return f"{LOOPBACK}:{self._ports[node_id - 1]}"

    def __enter__(self) -> Self:
        try:
            self._start_zookeeper()
            for node_id in range(1, len(self._ports) + 1):
                self._launch(node_id)
            for node_id in range(1, len(self._ports) + 1):
                self._wait(node_id)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def kill(self, node_id: int) -> None:
        """End a broker as a power cut would."""
        self._java.pop(node_id).kill()

    def restart(self, node_id: int) -> None:
        """Bring a killed broker back, on the same port."""
        self._launch(node_id)
        self._wait(node_id)

    def _end(self) -> None:
        # The brokers first: they would wait for a ZooKeeper that has gone.
        for node_id in sorted(self._java, reverse=True):
            self._java.pop(node_id).kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_zookeeper(self) -> None:
        settings = {
            "clientPort": str(self._zookeeper_port),
            "clientPortAddress": LOOPBACK,
            "dataDir": str(self._folder / "zookeeper"),
            "admin.enableServer": "false",
            "tickTime": "500",
        }
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._java[0] = _Java(self._folder / "node-0", main, settings)
        wait_until_answers(LOOPBACK, self._zookeeper_port, Deadline.after(_START_S))

    def _launch(self, node_id: int) -> None:
        settings = {
            "broker.id": str(node_id),
            "listeners": f"{self._protocol}://{self.address(node_id)}",
            "security.inter.broker.protocol": self._protocol,
            "log.dirs": str(self._folder / f"data-{node_id}"),
            "zookeeper.connect": f"{LOOPBACK}:{self._zookeeper_port}",
        }
        folder = self._folder / f"node-{node_id}"
        self._java[node_id] = _Java(folder, "kafka.Kafka", self._properties | settings)

    def _wait(self, node_id: int) -> None:
        java, deadline = self._java[node_id], Deadline.after(_START_S)
        while not re.search(rf"\[KafkaServer id={node_id}\] started", java.log_text()):
            assert java.runs, telling(java.log_text())
            deadline.check(f"the start of broker {node_id}")
            time.sleep(0.05)


class _Java:
    """One JVM, with its files in `folder`; it ends with us."""

    def __init__(self, folder: Path, main_class: str, settings: Mapping[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        file, self._log = folder / "properties", folder / "log"
        self._log.write_bytes(b"")
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        file.write_text(text, encoding="utf-8")
        options = [*heap_options(), *SHORT_RUN, *logging_options("info")]
        jars = class_path(VERSION)
        arguments = [*options, "-cp", jars, main_class, str(file)]
        self._process = start_java(arguments, self._log, note=self._note)

    def _note(self, pid: int) -> None:
        self._watchdog = start_watchdog(pid)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(_STOP_S)
        self._watchdog.terminate()
        self._watchdog.wait(_STOP_S)
