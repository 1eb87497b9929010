"""tools/compile_spark_zip.py on an archive of two modules, imported by Pythons of their own."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "compile_spark_zip.py"
WHERE = """
import sys
sys.path.insert(0, sys.argv[1])
import pyspark.part
print(pyspark.part.__file__)
"""


@pytest.fixture
def archive(tmp_path):
    made = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("pyspark/", "")
        new.writestr("pyspark/__init__.py", "")
        new.writestr("pyspark/part.py", "WHAT = 'as it was'\n")
        new.writestr("pyspark/conditions.json", '{"a": 1}')
        new.writestr("pyspark/tests/test_part.py", "assert True\n")
    return made


def compile_zip(archive):
    done = subprocess.run(
        [sys.executable, str(TOOL), str(archive)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stderr


def places(archive):
    with zipfile.ZipFile(archive) as file:
        return {item.filename: item.header_offset for item in file.infolist()}


@pytest.mark.slow
def test_modules_have_bytecode_beside_their_sources_and_the_rest_is_as_it_was(archive):
    with zipfile.ZipFile(archive) as old:
        before = {name: old.read(name) for name in old.namelist()}

    assert compile_zip(archive) == f"{archive}: 2 modules compiled\n"

    with zipfile.ZipFile(archive) as new:
        assert new.testzip() is None
        after = {name: new.read(name) for name in new.namelist()}
    assert after.keys() - before.keys() == {"pyspark/__init__.pyc", "pyspark/part.pyc"}
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_a_process_that_has_the_archive_open_goes_on_reading(archive):
    """Python remembers where things are in an archive, and opens it anew for each."""
    old = places(archive)

    compile_zip(archive)

    assert places(archive).items() >= old.items()


@pytest.mark.slow
def test_python_takes_the_bytecode(archive):
    compile_zip(archive)

    done = subprocess.run(
        [sys.executable, "-S", "-c", WHERE, str(archive)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == f"{archive}/pyspark/part.pyc"


@pytest.mark.slow
def test_an_archive_that_has_bytecode_is_left_alone(archive):
    compile_zip(archive)
    made = archive.stat()

    assert compile_zip(archive) == f"{archive}: 0 modules compiled\n"

    assert archive.stat().st_ino == made.st_ino
