"""`capture.to`: a process's own frames as pcapng, in a folder of the machine it runs on.

One file per process, readable by its owner alone, with secrets left out; a fork begins its own.
Frames are written as they come, so that a worker that is killed leaves what it said.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig, Endpoint
from pyspark_kafkaproto.net.connection import OnFrame

if TYPE_CHECKING:
    from pyspark_kafkaproto.capture.recorder import Recorder


def capture_observer(config: ClientConfig, here: str, broker: Endpoint) -> OnFrame | None:
    """Records the frames of connections whose configuration has `capture.to`."""
    if not config.capture_to:
        return None
    from pyspark_kafkaproto.capture.recorder import Address  # noqa: PLC0415  rarely needed

    recorder = _recorder(config.capture_to, os.getpid())
    ours = Endpoint.parse(here)
    client = Address(ours.host, ours.port)
    return recorder.connection(client, Address(broker.host, broker.port)).on_frame


@cache
def _recorder(folder: str, pid: int) -> Recorder:
    """The file of this process in `folder`."""
    from pyspark_kafkaproto.capture.recorder import Recorder  # noqa: PLC0415  rarely needed

    path = Path(folder) / f"kafkaproto-{pid}-{time_ns() // 1_000_000}.pcapng"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigError("capture.to", folder, f"a folder to write to ({error})") from error
    return Recorder(os.fdopen(number, "wb", buffering=0).write)
