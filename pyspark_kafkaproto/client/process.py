"""What belongs to the process that made it: sockets, threads, identities that a fork copies."""

from __future__ import annotations

import os

from pyspark_kafkaproto.errors import LocalProtocolError


def check_process(what: str, maker: int) -> None:
    """Refuse `what` in another process than `maker`, which made it.

    Raises:
        LocalProtocolError: this is a child that was forked.
    """
    if maker != os.getpid():
        raise LocalProtocolError(
            f"this {what} is that of process {maker}, which was forked: make one in each process"
        )
