# Types of the native way through packets; see `_run.pyx` for what the function does.

def take_run(
    data: bytes, pos: int, is_big_endian: bool, flow: bytes, seq: int, wanted: int
) -> tuple[int, int, bytes, int, int]: ...
