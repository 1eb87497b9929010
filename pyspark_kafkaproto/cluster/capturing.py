"""Captures of a process's own connections: all of them on request, the last ones with an error.

`capture.to` names a folder, on the machine the process runs on: one file per process, readable by
its owner alone; a fork begins its own. Frames are written as they come, so that a worker that is
killed leaves what it said. Unless `capture.errors` is false, each connection remembers the start
of its last frames; an error that reaches the user and that packets can explain has them written
beside it, and says where. Secrets are left out of both.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, BinaryIO

from pyspark_kafkaproto.cluster.ring import Ring, write_rings
from pyspark_kafkaproto.cluster.topic_ids import NAMES
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    DataLoss,
    DeadlineExceeded,
    KafkaProtoError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.net import ClientConfig, Endpoint
from pyspark_kafkaproto.net.observing import OnFrame

if TYPE_CHECKING:
    from pyspark_kafkaproto.capture.recorder import Recorder

_log = logging.getLogger(__name__)

# Of one process: connections that are remembered, and files it leaves, however often it fails.
_RINGS_MAX = 32
_FILES_MAX = 5
# Of all of this user's processes, in the system's folder for temporary files.
_KEPT_MAX = 50
_ERROR_FILES = "kafkaproto-error-*.pcapng"
# What was said long before an error has little to do with it.
_RECENT_NS = 120 * 1_000_000_000

# What packets can explain. A wrong option they cannot, nor a wrong password: it is hidden in them.
_ABOUT_BROKERS = (
    BrokerError,
    ConnectionFailed,
    DataLoss,
    DeadlineExceeded,
    RemoteProtocolError,
    UnsupportedVersion,
)
# Answers that say all there is to say: no such thing, no right, a value that cannot be. They come
# of what was asked for, and packets would repeat the text.
_PLAIN_ANSWERS = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_AUTH_DISABLED",
        "DELEGATION_TOKEN_EXPIRED",
        "DELEGATION_TOKEN_NOT_FOUND",
        "DELEGATION_TOKEN_OWNER_MISMATCH",
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "DUPLICATE_RESOURCE",
        "GROUP_AUTHORIZATION_FAILED",
        "GROUP_ID_NOT_FOUND",
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "INVALID_CONFIG",
        "INVALID_GROUP_ID",
        "INVALID_PARTITIONS",
        "INVALID_REGULAR_EXPRESSION",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_SESSION_TIMEOUT",
        "INVALID_TOPIC_EXCEPTION",
        "INVALID_TRANSACTION_TIMEOUT",
        "INVALID_UPDATE_VERSION",
        "MESSAGE_TOO_LARGE",
        "NON_EMPTY_GROUP",
        "NO_REASSIGNMENT_IN_PROGRESS",
        "POLICY_VIOLATION",
        "RESOURCE_NOT_FOUND",
        "SECURITY_DISABLED",
        "TOPIC_ALREADY_EXISTS",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_DELETION_DISABLED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "UNACCEPTABLE_CREDENTIAL",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
)

_SAYS_WHERE = "its last packets: kafkaproto dissect"

_rings: deque[Ring] = deque(maxlen=_RINGS_MAX)
_written: list[Path] = []


def capture_observer(config: ClientConfig, here: str, broker: Endpoint) -> OnFrame | None:
    """Records the frames of connections whose configuration has `capture.to`."""
    if not config.capture_to:
        return None
    from pyspark_kafkaproto.capture.recorder import Address  # noqa: PLC0415  rarely needed

    try:
        recorder = _recorder(config.capture_to, os.getpid())
    except OSError as error:
        reason = f"expected a folder to write to: {error.strerror}"
        raise ConfigError(config.named("capture.to"), config.capture_to, reason) from error
    recorder.name_topics(NAMES)
    ours = Endpoint.parse(here)
    client = Address(ours.host, ours.port)
    track = recorder.connection(client, Address(broker.host, broker.port))

    def on_frame(direction: str, pieces: Sequence[memoryview], time_ns: int) -> None:
        recorder.name_topics(NAMES)
        track.on_frame(direction, pieces, time_ns)

    return on_frame


@cache
def _recorder(folder: str, pid: int) -> Recorder:
    """The file of this process in `folder`."""
    from pyspark_kafkaproto.capture.frame_file import FrameFile  # noqa: PLC0415  rarely needed
    from pyspark_kafkaproto.capture.recorder import Recorder  # noqa: PLC0415  rarely needed

    path = Path(folder) / f"kafkaproto-{pid}-{time_ns() // 1_000_000}.pcapng"

    def warn(error: OSError) -> None:
        _log.warning("capture.to: %s takes no more frames: %s", path, error.strerror)

    path.parent.mkdir(parents=True, exist_ok=True)
    file = FrameFile(_private_file(path), warn)
    atexit.register(file.close)
    return Recorder(file.write)


def _private_file(path: Path) -> BinaryIO:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(number, "wb", buffering=0)


def error_observer(config: ClientConfig, here: str, broker: Endpoint) -> OnFrame | None:
    """Remembers the last frames of every connection, unless `capture.errors` is false."""
    if not config.capture_errors:
        return None
    ring = Ring(here, broker)
    _rings.append(ring)
    return ring.on_frame


@contextmanager
def packets_with_errors() -> Iterator[None]:
    """An error of this package that leaves the block says where its last packets are."""
    try:
        yield
    except KafkaProtoError as error:
        add_packets(error)
        raise


def packets_explain(error: KafkaProtoError) -> bool:
    """Whether the last packets say more of an error than its text does.

    Lost connections, time-outs, damaged bytes, versions and answers that were not to be expected:
    yes. Options, logins, and answers that are complete, such as an unknown topic: no.
    """
    if isinstance(error, BrokerError):
        return error.error.name not in _PLAIN_ANSWERS
    return isinstance(error, _ABOUT_BROKERS)


def add_packets(error: KafkaProtoError) -> None:
    """Write what was said last, and end the error's text with the command that shows it.

    Packets do not explain it, nothing was said, or it cannot be written: it stays as it is.
    """
    if not packets_explain(error) or _SAYS_WHERE in str(error):
        return
    recent = time_ns() - _RECENT_NS
    rings = [ring for ring in list(_rings) if ring.last_ns > recent]
    if not rings or len(_written) >= _FILES_MAX:
        return
    from pyspark_kafkaproto.capture.recorder import Recorder  # noqa: PLC0415  for errors alone

    name = _ERROR_FILES.replace("*", f"{os.getpid()}-{time_ns() // 1_000_000}")
    with suppress(OSError):
        # Where nothing can be written, as in a container, there is no such folder.
        path = Path(tempfile.gettempdir()) / name
        with _private_file(path) as stream:
            recorder = Recorder(stream.write)
            recorder.name_topics(NAMES)
            write_rings(rings, recorder)
        _written.append(path)
        _remove_oldest(path.parent)
        error.add_line(f"{_SAYS_WHERE} {shlex.quote(str(path))}")


def _remove_oldest(folder: Path) -> None:
    """Leave the last files alone: who looks at one does so soon, and nobody tidies up after us."""
    with suppress(OSError):  # another process may be at it, too
        files = [(item.stat(), item) for item in folder.glob(_ERROR_FILES)]
        own = [(found.st_mtime_ns, item) for found, item in files if found.st_uid == os.getuid()]
        for _, item in sorted(own)[:-_KEPT_MAX]:
            item.unlink()
