# Types of the native codec; see `pyspark_kafkaproto.records` for what the functions do.

from collections.abc import Callable, Sequence

from typing_extensions import Buffer

from pyspark_kafkaproto.records._block import Source
from pyspark_kafkaproto.records.columns import Columns, Decoded, Skimmed
from pyspark_kafkaproto.records.transactions import AbortedTransactions

FAULTS: tuple[str, ...]

def decode(
    block: Buffer,
    *,
    pos: int = 0,
    start: int,
    stop: int,
    wanted: Columns,
    aborted: AbortedTransactions | Sequence[tuple[int, int]] = (),
    check_crcs: bool = True,
    batch_limit_bytes: int = ...,
    chunk_bytes: int = ...,
    arrived: int | None = None,
    more: Callable[[], int] | None = None,
    source: Source | None = None,
) -> Decoded: ...
def skim(block: Buffer, pos: int = 0) -> Skimmed: ...
