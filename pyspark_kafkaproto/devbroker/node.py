"""One node: a JVM that runs kafka.Kafka on a folder of its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from pyspark_kafkaproto.devbroker.files import read_json, write_whole
from pyspark_kafkaproto.devbroker.java import (
    SHORT_RUN,
    heap_options,
    logging_options,
    run_java,
    start_java,
)
from pyspark_kafkaproto.devbroker.logs import reason, telling
from pyspark_kafkaproto.devbroker.processes import ProcessId, start_watchdog
from pyspark_kafkaproto.errors import DevBrokerFailed

# Logged after the broker was unfenced and its listeners accept connections.
_STARTED = "Kafka Server started"
_PORT_TAKEN = ("Address already in use", "BindException")
_FORMAT_TIMEOUT_S = 60.0
_STOP_GRACE_S = 20.0


class PortTaken(DevBrokerFailed):
    """Someone else bound a port between our finding it free and the broker's binding it."""


class Node:
    """A broker and controller with id `node_id`, all of whose files are in `folder`."""

    def __init__(self, node_id: int, folder: Path) -> None:
        self.node_id = node_id
        self.folder = folder
        self._process_file = folder / "process.json"
        self._log = folder / "broker.log"
        self._log_pos = 0
        self._java: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def log_dir(self) -> Path:
        """Where Kafka keeps its topics."""
        return self.folder / "data"

    @property
    def properties_file(self) -> Path:
        """The node's server.properties."""
        return self.folder / "server.properties"

    @property
    def process(self) -> ProcessId | None:
        """The running JVM, whoever started it; None when there is none."""
        found = read_json(self._process_file, ProcessId)
        return found if found is not None and found.is_alive else None

    def log_text(self) -> str:
        """What the node logged, restarts included, since it was last started from a stop."""
        return self._read_log(0)

    def forget_log(self) -> None:
        """Begin a new log; the one before is kept as `broker.log.1`."""
        if self._log.exists():
            self._log.replace(self._log.with_name("broker.log.1"))

    def format(self, class_path: str, cluster_id: str) -> None:
        """Prepare an empty log folder for the cluster."""
        # Left half done by a run that was killed: no broker ever ran on it.
        shutil.rmtree(self.log_dir, ignore_errors=True)
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id]
        done = run_java(
            [
                *heap_options(),
                *SHORT_RUN,
                *logging_options("warn"),
                *("-cp", class_path),
                *tool,
                *("-c", str(self.properties_file)),
            ],
            timeout_s=_FORMAT_TIMEOUT_S,
        )
        if done.returncode:
            text = done.stdout + done.stderr
            found = reason(text)
            why = found and f"{found}; it printed"
            raise DevBrokerFailed(f"Kafka could not format {self.log_dir}{why}:\n{telling(text)}")

    def launch(self, class_path: str, *, detached: bool) -> None:
        """Start the JVM; unless `detached` it ends when the calling process ends."""
        scratch = self.folder / "tmp"  # native libraries are unpacked there; a kill leaves them
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        self._log_pos = self._log.stat().st_size if self._log.exists() else 0
        self._java = start_java(
            [
                *heap_options(),
                "-XX:+UseSerialGC",
                f"-Djava.io.tmpdir={scratch}",
                *logging_options("info"),
                *("-cp", class_path),
                *("kafka.Kafka", str(self.properties_file)),
            ],
            self._log,
            note=lambda pid: self._note(pid, detached=detached),
        )

    def _note(self, pid: int, *, detached: bool) -> None:
        """Have the process found, and ended with us, by whoever comes after us."""
        if not detached:
            self._watchdog = start_watchdog(pid)
        process = ProcessId.of(pid)
        if process is not None:
            write_whole(self._process_file, json.dumps(asdict(process)))

    def is_ready(self) -> bool:
        """Whether the started broker serves clients.

        Raises:
            PortTaken: it could not bind one of its ports.
            DevBrokerFailed: it ended; the text has what it logged.
        """
        text = self._read_log(self._log_pos)
        if self._java is not None and self._java.poll() is not None:
            kind = PortTaken if any(sign in text for sign in _PORT_TAKEN) else DevBrokerFailed
            raise kind(
                f"node {self.node_id} ended with exit code {self._java.returncode} before it "
                f"was ready{reason(text)}; it logged ({self._log}):\n{telling(text)}"
            )
        return _STARTED in text

    def explain(self) -> str:
        """The telling lines of the log since the last launch."""
        return telling(self._read_log(self._log_pos))

    def kill(self) -> None:
        """End the JVM at once, as a power cut would."""
        self._end(lambda process: process.signal(signal.SIGKILL))

    def stop(self) -> None:
        """End the JVM as Kafka wants to be ended; kill it when that takes longer than 20 s."""
        self._end(lambda process: process.end(_STOP_GRACE_S))

    def ask_to_end(self) -> None:
        """Have the JVM begin its shutdown, without waiting for it."""
        if (process := self.process) is not None:
            process.signal(signal.SIGTERM)

    def _end(self, how: Callable[[ProcessId], None]) -> None:
        process = self.process
        if process is not None:
            how(process)
            process.wait(_STOP_GRACE_S)
        self._reap()
        self._process_file.unlink(missing_ok=True)

    def _reap(self) -> None:
        if self._java is not None:
            self._java.wait(_STOP_GRACE_S)
        if self._watchdog is not None:
            self._watchdog.terminate()  # nothing is left to watch
            self._watchdog.wait(_STOP_GRACE_S)
        self._java = self._watchdog = None

    def _read_log(self, start: int) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(start)
                return log.read().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return ""


def kill_nodes(nodes: Iterable[Node]) -> None:
    """Kill all nodes of a cluster whose data nobody wants; returns when they have ended."""
    for node in nodes:
        node.kill()


def stop_nodes(nodes: Iterable[Node]) -> None:
    """Stop all nodes of a cluster; returns when their processes have ended."""
    nodes = list(nodes)
    # All at once: one by one, the last would wait in vain for controllers that are gone.
    for node in nodes:
        node.ask_to_end()
    for node in nodes:
        node.stop()
