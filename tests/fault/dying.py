"""Kills a process, as by a power cut, at a chosen step of what it says to brokers.

Steps are counted over all processes that watch the same folder:

    counts/STEP   a byte for each time; STEP is ROLE-`sent|received`-API
    armed         `STEP NTH worker|all|none`; removed by whoever comes there, and dies of it
                  (`none`: lives on)
    pids/PID      who has a connection
    dead          while it is there nobody may speak: what `all` leaves behind
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.net.observing import OnFrame, observe_connections

_NAMES = {api.key: api.name for api in APIS}


def watch(folder: Path, role: str) -> None:
    """Count, and die of, every request sent and answer received by this process from now on."""

    def observer(config: object, here: str, broker: object) -> OnFrame:
        del config, here, broker
        (folder / "pids" / str(os.getpid())).touch()
        if (folder / "dead").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        names: dict[bytes, int] = {}

        def on_frame(direction: str, pieces: Sequence[memoryview], _time_ns: int) -> None:
            frame = pieces[0]
            if direction == "sent":
                api = int.from_bytes(frame[:2], "big")
                names[bytes(frame[4:8])] = api
            else:
                api = names.pop(bytes(frame[:4]))
            _step(folder, f"{role}-{direction}-{_NAMES[api]}")

        return on_frame

    observe_connections(observer)


def _step(folder: Path, name: str) -> None:
    with (folder / "counts" / name).open("ab") as file:
        file.write(b".")
        nth = file.tell()
    try:
        armed, at, scope = (folder / "armed").read_text().split()
        if (armed, int(at)) != (name, nth):
            return
        (folder / "armed").unlink()
    except FileNotFoundError:
        return
    if scope == "none":
        return
    if scope == "all":
        (folder / "dead").touch()
        for other in (folder / "pids").iterdir():
            if int(other.name) != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(int(other.name), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class FailPoints:
    """The harness' side of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arm(self, text: str = "") -> None:
        """Count anew; somebody dies at `STEP NTH worker|all`, with `none` it is only noted."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("counts", "pids"):
            (self.folder / name).mkdir(parents=True)
        if text:
            (self.folder / "armed").write_text(text)

    @property
    def is_dead(self) -> bool:
        """Whether everything is dead."""
        return (self.folder / "dead").exists()

    @property
    def was_hit(self) -> bool:
        """Whether somebody has died of what was armed."""
        return not (self.folder / "armed").exists()

    def revive(self) -> None:
        """Let processes that start now live."""
        (self.folder / "dead").unlink(missing_ok=True)

    def steps(self) -> list[str]:
        """Every step that was counted: `STEP NTH`."""
        return [
            f"{path.name} {nth + 1}"
            for path in sorted((self.folder / "counts").iterdir())
            for nth in range(path.stat().st_size)
        ]
