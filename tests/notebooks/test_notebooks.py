"""Every notebook runs from its first cell to its last, and is committed as a page to read.

Each starts the broker that it needs and stops it; what a notebook claims it asserts itself.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import nbformat
import pytest

from tools import execute_notebooks
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


def without_packages(*arguments):
    """The tool in a Python that has nothing installed."""
    command = [sys.executable, "-I", "-S", execute_notebooks.__file__, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_the_tool_says_what_it_needs_in_one_line():
    done = without_packages("2-stream.ipynb")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "not installed: nbclient, nbformat, ipykernel; " in line
    assert "pip install '.[spark,plot,cli,test]'" in line


@pytest.mark.slow
def test_the_tool_helps_without_what_it_needs():
    done = without_packages("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "NAME.ipynb" in done.stdout


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
