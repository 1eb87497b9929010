"""Run the notebooks and keep what they put out.

python tools/execute_notebooks.py [NAME.ipynb …]

What is committed is a page to read, so each is run from its first cell to its last and written
back with its outputs. What Java says on standard error is left out, and so are the times of cells,
which would differ at every run. tests/notebooks runs the same function and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
CELL_TIMEOUT_S = 120
# Imported where they are used: --help does without them.
NEEDED = ("nbclient", "nbformat", "ipykernel")


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run of now, in a process of its own.

    Raises:
        CellExecutionError: a cell failed; with the cell and its traceback.
        CellTimeoutError: one took longer than CELL_TIMEOUT_S.
    """
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        shutdown_kernel="immediate",
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [item for item in cell.outputs if item.get("name") != "stderr"]
    return notebook


def main(arguments: Sequence[str] | None = None) -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME.ipynb", help="default: all")
    names = parser.parse_args(arguments).names
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"not installed: {', '.join(missing)}; in the checkout: "
            "pip install '.[spark,plot,cli,test]'"
        )
    import nbformat  # noqa: PLC0415

    paths = [FOLDER / Path(name).name for name in names] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        if not path.is_file():
            raise SystemExit(f"there is no notebook {path.name} in {FOLDER}")
    for path in paths:
        began = time.monotonic()
        notebook = executed(path)
        notebook.metadata.pop("language_info", None)  # the patch level of somebody's Python
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
