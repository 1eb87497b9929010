"""Every notebook runs from its first cell to its last, and is committed as a page to read.

Each starts the broker that it needs and stops it; what a notebook claims it asserts itself.
"""

from __future__ import annotations

import ast

import nbformat
import pytest

from tools.execute_notebooks import FOLDER, executed

PATHS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def imported(source):
    plain = "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{item.name}" for item in node.names)
        elif isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_there_are_five():
    assert [path.name[0] for path in PATHS] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_page_is_whole(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_only_public_names_are_used(path):
    names = {name for cell in code_cells(path) for name in imported(cell.source)}
    assert "pyspark_kafkaproto.devbroker.DevBroker" in names
    parts = {part for name in names for part in name.split(".") if not part.endswith("__")}
    assert [part for part in parts if part.startswith("_")] == []


@pytest.mark.fault
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs(path, monkeypatch):
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    executed(path)
