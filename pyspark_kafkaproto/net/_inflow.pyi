# Types of native receiving; see `_inflow.pyx` for what it does.

import socket

from pyspark_kafkaproto.records._block import Source

class Inflow(Source):
    is_ahead: bool
    arrived: int
    reached: int
    waited_s: float
    waited_natively_s: float
    def __init__(
        self,
        sock: socket.socket,
        payload: memoryview,
        arrived: int,
        pos: int,
        piece_bytes: int,
        patience_s: float,
        ahead: bool,
    ) -> None: ...
    def note(self, count: int) -> None: ...
    def note_waited(self, seconds: float) -> None: ...
    def check(self) -> None: ...
    def wait(self, stop: int, timeout_s: float) -> int: ...
    def stop(self) -> None: ...
