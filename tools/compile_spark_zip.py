"""Put bytecode into Spark's `python/lib/pyspark.zip`, once per installation.

    python tools/compile_spark_zip.py          of the PySpark that this Python imports
    python tools/compile_spark_zip.py ZIP      of another one

Spark puts that archive first on the path of every Python process it starts, and ships it with
sources alone. Python keeps no bytecode of what it imports from an archive, so each of them compiles
PySpark anew: a second of processor time, in which a streaming query or a first task waits. The
sources stay in: a Python of another version goes on using them.
"""

from __future__ import annotations

import importlib.util
import py_compile
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Compile the archive that is named, or the one that is installed."""
    archive = Path(arguments[0]) if arguments else installed_archive()
    print(f"{archive}: {compile_archive(archive)} modules compiled", file=sys.stderr)
    return 0


def installed_archive() -> Path:
    """That of the PySpark which this Python imports."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("pyspark is not installed here: name the archive")
    return Path(found.origin).parent / "python" / "lib" / "pyspark.zip"


def compile_archive(archive: Path) -> int:
    """Put bytecode behind what is in the archive already; how many modules had none.

    What was there stays where it was: processes that have the archive open go on reading.
    """
    count = 0
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(shutil.copy2(archive, folder))
        with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as file:
            names = file.namelist()
            for name in names:
                if is_wanted(name) and f"{name}c" not in names:
                    shown = f"{archive}/{name}"
                    file.write(compiled(file.read(name), shown, Path(folder)), f"{name}c")
                    count += 1
        if count:
            made.replace(archive)
    return count


def is_wanted(name: str) -> bool:
    """Whether it is a module; PySpark's own tests, half of all, are imported by nobody."""
    return name.endswith(".py") and "/tests/" not in name


def compiled(content: bytes, shown: str, folder: Path) -> Path:
    """The bytecode of one module, which does not go by the time of its source."""
    source, target = folder / "module.py", folder / "module.pyc"
    source.write_bytes(content)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(target), shown, doraise=True, invalidation_mode=mode)
    return target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
