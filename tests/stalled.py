"""A real broker that hangs: its process stops, the kernel goes on taking connections."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.net import Deadline


@contextmanager
def stalled(broker: DevBroker, node_id: int = 1) -> Iterator[None]:
    """A node says nothing more, its connections open, and goes on at the end."""
    process = broker._node(node_id).process
    process.signal(signal.SIGSTOP)
    try:
        _wait_until_stopped(process.pid)
        yield
    finally:
        process.signal(signal.SIGCONT)


def _wait_until_stopped(pid: int) -> None:
    """A process that is to stop goes on until each of its threads has had a turn to do so.

    Some 25 ms where others use the processors too, in which a broker answers dozens of requests.
    """
    deadline = Deadline.after(10)
    threads = Path(f"/proc/{pid}/task")  # Linux has it; elsewhere it has to go without
    while any(_runs(thread) for thread in threads.glob("*")):
        deadline.check(f"waiting until process {pid} has stopped")


def _runs(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has just ended
    return state != "T"
