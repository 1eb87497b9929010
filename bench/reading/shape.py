"""How our reading cuts a topic into record batches: what the engine's ceiling has to yield too.

`python -m reading.shape PROPERTIES TOPIC FOLDER`, the properties of the client as JSON, writes
rows.json (rows of each batch, per partition) and sample.arrow (the largest batch), and prints the
sizes that the memory bar is measured by.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reading.ours import Reading

if TYPE_CHECKING:
    import pyarrow as pa


def write_shape(reading: Reading, folder: Path) -> None:
    """Read the topic once and write down what came."""
    import pyarrow as pa

    rows: list[list[int]] = []
    largest: pa.RecordBatch | None = None
    for task in reading.tasks:
        rows.append([])
        for batch in reading.batches(task):
            rows[-1].append(batch.num_rows)
            if largest is None or batch.num_rows > largest.num_rows:
                largest = batch
    if largest is None:
        raise RuntimeError("the topic is empty")
    (folder / "rows.json").write_text(json.dumps(rows))
    with pa.ipc.new_stream(str(folder / "sample.arrow"), largest.schema) as stream:
        stream.write_batch(largest)


if __name__ == "__main__":
    properties, topic, target = sys.argv[1:]
    with Reading.open(json.loads(properties), topic) as opened:
        write_shape(opened, Path(target))
        print(json.dumps(opened.largest_bytes()))
