"""The broker's life: made, started, killed, restarted, stopped; its data kept between starts."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark_kafkaproto.devbroker.files import FileLock, user_folder
from pyspark_kafkaproto.devbroker.jars import Report, class_path, report_to_stderr, version_key
from pyspark_kafkaproto.devbroker.node import Node, PortTaken, kill_nodes, stop_nodes
from pyspark_kafkaproto.devbroker.running import ClusterFile, find_running
from pyspark_kafkaproto.devbroker.settings import Ports, Settings
from pyspark_kafkaproto.devbroker.tools import KafkaTools
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed, KafkaProtoError
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.ports import LOOPBACK, free_ports, is_free, wait_until_answers
from pyspark_kafkaproto.net.security import PLAINTEXT
from pyspark_kafkaproto.wire.ids import id_text

_PORT_ATTEMPTS = 5
_PAUSE_S = 0.05


def default_data_dir() -> Path:
    """Where the broker of the command line and of the main job keeps its data."""
    return user_folder("XDG_STATE_HOME", ".local/state") / "devbroker"


class DevBroker(KafkaTools):
    """A real Apache Kafka on this machine, reachable from this machine alone.

    A context manager: the broker runs inside the `with`, and ends with the process that started it
    even when that is killed. Kafka's tools (`create_topic`, `produce`, …) are pointed at it.

    Args:
        data_dir: where its data is kept from run to run; None is a folder that `stop` removes.
            A cluster that was made there goes on, under the same cluster id and, while they are
            free, on the same ports.
        version: of Apache Kafka, 3.9.0 or later; KAFKA_HOME's if that is set, else 4.4.0.
        nodes: each is broker and controller; ids 1, 2, ….
        listeners: name to security protocol; the first is the one clients are told of.
        advertised: name to the `host` or `host:port` that clients of that listener are sent to,
            where it is not the one they can reach: for trying out what goes wrong then.
        properties: of the broker, over broker.properties and KAFKAPROTO_BROKER_PROPERTIES.
        start_timeout_s: how long a start may take, the fetching of jars not counted.
        report: takes one line for each jar that is fetched.

    Raises:
        ConfigError: an argument cannot be used.
        DevBrokerFailed: from every method: Java or jars are missing, Kafka ended; with its log.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        version: str | None = None,
        nodes: int = 1,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        start_timeout_s: float = 60.0,
        report: Report = report_to_stderr,
    ) -> None:
        super().__init__("", version=version, report=report)
        self.settings = Settings(
            nodes, listeners or {PLAINTEXT: PLAINTEXT}, properties or {}, advertised or {}
        )
        self.start_timeout_s = start_timeout_s
        self._given_dir = None if data_dir is None else Path(data_dir).absolute()
        self._data_dir: Path | None = None
        self._lock: FileLock | None = None
        self._cluster: ClusterFile | None = None
        self._nodes: list[Node] = []
        self._attached = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…` of the first listener of every node."""
        return self.addresses()

    def addresses(self, listener: str | None = None) -> str:
        """`host:port,…` of the named listener of every node, of the first listener if None."""
        return self._started.addresses(listener)

    @property
    def is_running(self) -> bool:
        """Whether every node's process is alive; False before `start` and after `stop`."""
        return bool(self._nodes) and all(node.process for node in self._nodes)

    def start(self, *, detached: bool = False) -> Self:
        """Start every node and return when all of them serve clients.

        Args:
            detached: the broker goes on after this process has ended. A later start on the same
                folder, by whatever process, then uses it and leaves it running.
        """
        if self._nodes:
            raise DevBrokerFailed("the broker was started already")
        try:
            self._data_dir = self._open_data_dir()
            if not self._attach():
                self._start_all(detached=detached)
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError) and not isinstance(error, KafkaProtoError):
                raise DevBrokerFailed(f"the broker could not be started: {error}") from error
            raise
        if detached or self._attached:
            self._release()
        return self

    def stop(self) -> None:
        """Stop every node; a broker that was running before `start` is left alone."""
        if self._given_dir is None:
            kill_nodes(self._nodes)  # nobody wants what an orderly end would save
        elif not self._attached:
            stop_nodes(self._nodes)
        self._nodes = []
        self._cluster = None
        self._attached = False
        self._release()
        if self._given_dir is None and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
        self._data_dir = None

    def kill(self, node_id: int = 1) -> None:
        """End a node as a power cut would; `restart` brings it back."""
        self._node(node_id).kill()

    def restart(self, node_id: int = 1) -> None:
        """Start a killed node on the same ports, or stop and start a running one."""
        node = self._node(node_id)
        node.stop()
        node.launch(self._class_path(), detached=self._started.detached)
        self._wait([node])

    def log_text(self, node_id: int | None = None) -> str:
        """What a node logged since `start`; what all of them did, one after the other, if None."""
        nodes = self._nodes if node_id is None else [self._node(node_id)]
        return "\n".join(node.log_text() for node in nodes)

    @property
    def _started(self) -> ClusterFile:
        if self._cluster is None:
            raise DevBrokerFailed("the broker was not started")
        return self._cluster

    @property
    def _folder(self) -> Path:
        if self._data_dir is None:
            raise DevBrokerFailed("the broker was not started")
        return self._data_dir

    def _node(self, node_id: int) -> Node:
        if not 1 <= node_id <= len(self._nodes):
            raise ConfigError(
                "node_id", node_id, f"expected 1 to {len(self._nodes)} of a started broker"
            )
        return self._nodes[node_id - 1]

    def _class_path(self) -> str:
        return class_path(self.version, report=self._report)

    def _open_data_dir(self) -> Path:
        data_dir = self._given_dir or Path(tempfile.mkdtemp(prefix="kafkaproto-"))
        if "," in str(data_dir):
            why = "expected a folder without a comma in its path: Kafka takes it for a list"
            raise ConfigError("data_dir", str(data_dir), why)
        lock = FileLock(data_dir / "lock")
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            is_ours = lock.try_acquire()
        except OSError as error:
            why = f"expected a folder to write to: {error.strerror}"
            raise ConfigError("data_dir", str(data_dir), why) from error
        if not is_ours:
            running = find_running(data_dir)
            where = f" (at {running.bootstrap_servers})" if running else ""
            raise DevBrokerFailed(
                f"another process runs a broker{where} on {data_dir}: give another folder, or set "
                "KAFKA_BOOTSTRAP_SERVERS to use that broker"
            )
        self._lock = lock
        return data_dir

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self._lock = None

    def _attach(self) -> bool:
        """Use the detached broker of the folder, if one runs; end what a killed run left."""
        running = find_running(self._folder)
        before = ClusterFile.read(self._folder)
        if running is None or before is None:
            return False
        if not (running.detached and running.is_whole):
            self._check_fits(before)  # whoever is refused leaves alone what is left of it
            running.stop()
            return False
        if others := self._other_settings(before):
            raise DevBrokerFailed(
                f"a broker with other settings runs on {self._folder} ({', '.join(others)}): start "
                f"it so, or kafkaproto devbroker stop --data-dir {shlex.quote(str(self._folder))}"
            )
        self._cluster, self._nodes, self._attached = before, before.nodes(self._folder), True
        return True

    def _other_settings(self, before: ClusterFile) -> list[str]:
        """What it runs with that is not as asked: `nodes 3, not 1`."""
        asked = self.settings
        pairs = {
            "Kafka": (before.version, self.version),
            "nodes": (len(before.ports), asked.nodes),
            "listeners": (before.listeners, dict(asked.listeners)),
            "advertised listeners": (before.advertised, dict(asked.advertised)),
        }
        found = [f"{name} {has}, not {want}" for name, (has, want) in pairs.items() if has != want]
        # By name alone: there may be passwords among them.
        changed = {name for name, _ in before.properties.items() ^ asked.properties.items()}
        return found + [f"another {name}" for name in sorted(changed)]

    def _start_all(self, *, detached: bool) -> None:
        jars = self._class_path()
        ports = self._earlier_ports()
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return self._start_on(ports or self._choose_ports(), jars, detached=detached)
            except PortTaken:
                stop_nodes(self._nodes)
                ports = None
        return self._start_on(self._choose_ports(), jars, detached=detached)

    def _start_on(self, ports: Sequence[Ports], jars: str, *, detached: bool) -> None:
        self._cluster = self._prepare(ports, jars, detached=detached)
        self._nodes = self._cluster.nodes(self._folder)
        for node in self._nodes:
            node.forget_log()
            node.launch(jars, detached=detached)
        self._wait(self._nodes)

    def _prepare(self, ports: Sequence[Ports], jars: str, *, detached: bool) -> ClusterFile:
        """Write what the nodes read; format their folders when the cluster is new."""
        before = ClusterFile.read(self._folder)
        cluster = ClusterFile(
            cluster_id=before.cluster_id if before else _new_cluster_id(),
            version=self.version,
            listeners=dict(self.settings.listeners),
            properties=dict(self.settings.properties),
            ports=ports,
            detached=detached,
            advertised=dict(self.settings.advertised),
        )
        nodes = cluster.nodes(self._folder)
        for node in nodes:
            node.folder.mkdir(exist_ok=True)
            text = self.settings.server_properties(node.node_id, ports, node.log_dir)
            node.properties_file.write_text(text, encoding="utf-8")
        if before is None:
            # A JVM each, at once: each takes about a second.
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(lambda node: node.format(jars, cluster.cluster_id), nodes))
        cluster.write(self._folder)
        return cluster

    def _earlier_ports(self) -> Sequence[Ports] | None:
        """The ports of the last start, if the cluster fits and all of them are free."""
        before = ClusterFile.read(self._folder)
        if before is None:
            return None
        self._check_fits(before)
        names = set(self.settings.listener_names)
        fits = all(set(ports) == names for ports in before.ports)
        if fits and all(is_free(port) for ports in before.ports for port in ports.values()):
            return before.ports
        return None

    def _check_fits(self, before: ClusterFile) -> None:
        """Refuse what cannot go on with the data that is there."""
        if len(before.ports) != self.settings.nodes:
            have = f"{self._folder} holds a cluster of {len(before.ports)}"
            raise ConfigError("nodes", self.settings.nodes, have)
        if version_key(before.version) > version_key(self.version):
            newer = f"{self._folder} was written by {before.version}: give another folder"
            raise ConfigError("version", self.version, newer)

    def _choose_ports(self) -> list[Ports]:
        names = self.settings.listener_names
        found = iter(free_ports(len(names) * self.settings.nodes))
        return [{name: next(found) for name in names} for _ in range(self.settings.nodes)]

    def _wait(self, nodes: Sequence[Node]) -> None:
        deadline = Deadline.after(self.start_timeout_s)
        for node in nodes:
            while not node.is_ready():
                if deadline.has_passed:
                    raise DevBrokerFailed(
                        f"Kafka node {node.node_id} was not ready within "
                        f"{self.start_timeout_s:g} s; it logged:\n{node.explain()}"
                    )
                time.sleep(_PAUSE_S)
        for port in self._client_ports(nodes):
            wait_until_answers(LOOPBACK, port, deadline)

    def _client_ports(self, nodes: Sequence[Node]) -> list[int]:
        cluster = self._started
        return [
            cluster.ports[node.node_id - 1][name] for node in nodes for name in cluster.listeners
        ]


def _new_cluster_id() -> str:
    """A random Kafka Uuid: 16 bytes in URL-safe base64, never with a leading dash."""
    while True:
        text = id_text(uuid.uuid4().bytes)
        if not text.startswith("-"):  # tools would take it for an option
            return text
