"""Run the notebooks and keep what they put out.

python tools/execute_notebooks.py [NAME.ipynb …]

What is committed is a page to read, so each is run from its first cell to its last and written
back with its outputs. What Java says on standard error is left out, and so are the times of cells,
which would differ at every run. tests/notebooks runs the same function and writes nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
CELL_TIMEOUT_S = 120


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run of now, in a process of its own.

    Raises:
        CellExecutionError: a cell failed; with the cell and its traceback.
        CellTimeoutError: one took longer than CELL_TIMEOUT_S.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [item for item in cell.outputs if item.get("name") != "stderr"]
    return notebook


def main() -> None:
    """Run those that are named, or all."""
    paths = [FOLDER / Path(name).name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        began = time.monotonic()
        notebook = executed(path)
        notebook.metadata.pop("language_info", None)  # the patch level of somebody's Python
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
