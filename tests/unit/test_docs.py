"""What README and docs show is there: Python blocks can be copied, links lead to what they name."""

from __future__ import annotations

import ast
import builtins
import re
from importlib import import_module
from pathlib import Path

import pytest

from pyspark_kafkaproto import KafkaCluster, error_codes
from pyspark_kafkaproto.net import ClientConfig

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A name of the code as a link to the file that has it.
LINK = re.compile(r"\[`(?:\w+\.)*(?P<name>\w+)`\]\((?P<file>[^)#]+\.py)\)")
SAID_TO_BE_IN = re.compile(
    r"`(?P<name>\w+)(?:\([^`]*\))?`\s+in\s+`(?P<module>pyspark_kafkaproto[\w.]*)`"
)
# What the reader has: a session, and a function that takes what was read.
GIVEN = {"load", "spark"}


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def pages_with_blocks():
    return [page for page in PAGES if blocks(page)]


def made_and_used(code):
    """The names that a block binds anywhere, and those that it reads."""
    made, used = set(), set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(name, ast.Load()):
                used.add(name)
            case ast.Name(name) | ast.arg(name) | ast.ExceptHandler(name=name):
                made.add(name)
            case ast.FunctionDef(name) | ast.ClassDef(name):
                made.add(name)
            case ast.alias(name, other):
                made.add(other or name.partition(".")[0])
    return made, used


def test_pages_have_blocks():
    assert {"README.md", "cluster.md", "writing.md"} <= {page.name for page in pages_with_blocks()}


@pytest.mark.parametrize("page", pages_with_blocks(), ids=lambda page: page.stem)
def test_every_block_compiles_and_finds_its_names_in_it_or_above(page):
    known = GIVEN | set(dir(builtins))
    for code in blocks(page):
        compile(code, str(page), "exec")
        made, used = made_and_used(code)
        known |= made
        assert used - known == set(), code


@pytest.mark.parametrize("page", pages_with_blocks(), ids=lambda page: page.stem)
def test_no_block_leaves_a_value_to_the_reader(page):
    assert [code for code in blocks(page) if "…" in code] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_linked_name_is_defined_in_the_file_that_the_link_leads_to(page):
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        code = (page.parent / link["file"]).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:def|class) {link['name']}\b", code, re.MULTILINE), link[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_is_in_the_module_that_it_is_said_to_be_in(page):
    for said in SAID_TO_BE_IN.finditer(page.read_text(encoding="utf-8")):
        assert hasattr(import_module(said["module"]), said["name"]), said[0]


def test_notice_names_the_file_of_what_is_taken_over_besides_the_messages():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    table = Path(error_codes.__file__).relative_to(ROOT)
    assert f"The error codes in {table}," in " ".join(notice.split())


def test_numbers_of_the_example_of_client_properties_are_the_defaults():
    text = (ROOT / "conf" / "client.properties.example").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^#?([\w.]+)=(\d+)$", text, re.MULTILINE))
    assert shown
    least = {"bootstrap.servers": "b-1:9092"}
    assert ClientConfig.parse(least | shown) == ClientConfig.parse(least)


def test_each_room_is_in_the_map_of_files():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `([\w./]+)` \|", text, re.MULTILINE))
    rooms = {
        item.name + "/" * item.is_dir()
        for item in (ROOT / "pyspark_kafkaproto").iterdir()
        if not item.name.startswith("_") and (item.is_dir() or item.suffix == ".py")
    }
    assert rooms <= shown


def test_each_call_of_the_cluster_is_in_its_table():
    table = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8").split("## Every call")[1]
    named = set(re.findall(r"`(\w+)`", table.split("\n## ")[0]))
    assert named >= {name for name in dir(KafkaCluster) if not name.startswith("_")}
