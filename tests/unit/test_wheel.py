"""A wheel brings the native codec to machines without a compiler; how it is built is sound."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DECODE = """
from pathlib import Path
import pyspark_kafkaproto
from pyspark_kafkaproto.records import IMPLEMENTATION, Columns, NewRecord, decode, encode_batch
print(Path(pyspark_kafkaproto.__file__).parents[1], IMPLEMENTATION)
batch = encode_batch([NewRecord(b"value")])
assert decode(batch, start=0, stop=1, wanted=Columns.VALUE).rows == 1
"""

NATIVE = [
    "capture/_run.",
    "net/_inflow.",
    "records/_block.",
    "records/_kernel.",
    "records/_kernel_write.",
    "records/_memory.",
]
# Makes whatever it is to make, all but one part.
COMPILER = """#!/bin/sh
case "$*" in *_block.c*) exit 1 ;; esac
while [ "$1" != -o ]; do shift; done
echo built >"$2"
"""
# Makes whatever it is to make, but for what only some compilers know of.
SIMPLE_COMPILER = """#!/bin/sh
case "$*" in
    *-DNO_FOLDING*) made=plain ;;
    *"_block.c "*) exit 1 ;;
    *) made=built ;;
esac
while [ "$1" != -o ]; do shift; done
echo $made >"$2"
"""
# As pyspark/sql/worker/lookup_data_sources.py looks for sources.
LOOK_UP = """
from pkgutil import iter_modules
print(*(item.name for item in iter_modules() if item.name.startswith("pyspark_")))
"""


def test_wheels_are_built_for_every_python_that_is_supported():
    settings = tomllib.loads((ROOT / "cibuildwheel.toml").read_text())["tool"]["cibuildwheel"]
    minors = [f"cp31{minor}-*" for minor in (1, 2, 3, 4)]
    assert settings["build"].split() == minors
    classifiers = (ROOT / "setup.cfg").read_text()
    assert classifiers.count("Python :: 3.1") == len(minors)
    assert "kernel" in settings["test-command"][0]
    assert "take_run" in settings["test-command"][1]
    assert "Inflow" in settings["test-command"][2]


def cloned(folder):
    source = folder / "source"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(source)], check=True
    )
    return source


@pytest.mark.long
def test_spark_finds_the_source_of_an_editable_install_from_any_folder(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    install = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*install, "--no-deps", "-e", str(cloned(tmp_path))], check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", LOOK_UP],
        check=True,
        env=bare,
        cwd=elsewhere,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["pyspark_kafkaproto"]


@pytest.mark.long
def test_a_wheel_decodes_natively_where_there_is_no_compiler(tmp_path):
    source = cloned(tmp_path)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, folder = tmp_path / "wheels", tmp_path / "installed"
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(wheels), str(source)], check=True)
    (wheel,) = wheels.iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    for native in NATIVE:
        built = [name for name in names if name.startswith(f"pyspark_kafkaproto/{native}")]
        assert any(name.endswith(".so") for name in built), native
    assert not any(name.startswith(("tests/", "bench/", "tools/")) for name in names)
    # No compiler can be found, and pip is not to look for one.
    bare = os.environ | {"PATH": str(tmp_path), "CC": "/none", "PYTHONPATH": str(folder)}
    install = [*pip, "install", "--no-index", "--no-deps", "--target", str(folder), str(wheel)]
    subprocess.run(install, check=True, env=bare)
    done = subprocess.run(
        [sys.executable, "-c", DECODE],
        check=True,
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(folder), "kernel"]


@pytest.mark.long
def test_a_source_archive_has_all_of_the_package(tmp_path):
    """There is no MANIFEST.in: what is no Python is in it because setup.cfg names it."""
    source = cloned(tmp_path)
    sdist = [sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path)]
    subprocess.run(sdist, check=True, cwd=source)
    tracked = subprocess.run(
        ["git", "ls-files", "pyspark_kafkaproto"],
        check=True,
        cwd=source,
        capture_output=True,
        text=True,
    ).stdout.split()
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    of_the_build = {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "setup.cfg", "setup.py"}
    assert {*tracked, *of_the_build} - names == set()
    assert not any(name.startswith(("tests/", "bench/", "tools/")) for name in names)


@pytest.mark.slow
def test_a_part_that_cannot_be_built_leaves_none_of_an_older_build(tmp_path):
    """Beside parts that could be, the old one of another build would refuse each of theirs."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for native in NATIVE:
        source = tmp_path / "pyspark_kafkaproto" / f"{native}pyx"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
        older = source.with_suffix(suffix)
        older.touch()
        os.utime(older, (0, 0))  # setuptools replaces nothing of the same second
    build_with(COMPILER, tmp_path)
    left = {path.name: path.read_text() for path in tmp_path.glob(f"*/*/*{suffix}")}
    assert len(left) == len(NATIVE) - 1
    assert f"_block{suffix}" not in left
    assert set(left.values()) == {"built\n"}


@pytest.mark.slow
def test_a_compiler_that_cannot_fold_builds_all_else(tmp_path):
    """The part with CRCs by folding in it is that without which nothing native works."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "pyspark_kafkaproto/records").mkdir(parents=True)
    for native in ("_block", "_kernel"):
        (tmp_path / f"pyspark_kafkaproto/records/{native}.pyx").touch()
    build_with(SIMPLE_COMPILER, tmp_path)
    objects = {path.name: path.read_text() for path in tmp_path.glob("build/**/*.o")}
    assert objects == {"_block.o": "plain\n", "_kernel.o": "built\n"}
    assert len(list(tmp_path.glob("*/*/*.so"))) == 2


def build_with(compiler, folder):
    script = folder / "compiler"
    script.write_text(compiler)
    script.chmod(0o755)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        check=True,
        env=os.environ | {"CC": str(script)},
        cwd=folder,
    )
