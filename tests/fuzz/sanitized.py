"""Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer, run commands on them.

    python tests/fuzz/sanitized.py                        native code's tests and the kept corpus
    python tests/fuzz/sanitized.py -- tests/fuzz/run.py --target batch --seconds 600

The build goes into a throwaway copy of the checkout; nothing here changes. With clang the fuzzer is
guided by the kernels' own branches too. Where no compiler has sanitizers this says so and does
nothing. CC names the compiler; else clang and gcc are tried.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
COVERAGE = "-fsanitize=fuzzer-no-link"
BUILD_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer"]
COPIED = ["pyspark_kafkaproto", "tests", "setup.py", "setup.cfg", "pyproject.toml", "README.md"]
# The slow ones too, and all drawn inputs.
TESTS = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not long",
         "--hypothesis-profile=full", "tests/unit/records", "tests/golden",
         "tests/unit/net/test_inflow.py", "tests/unit/client/reading/test_coming.py",
         "tests/property/test_records.py", "tests/property/test_write.py",
         "tests/unit/capture/test_run.py", "tests/unit/capture/test_fast_path.py",
         "tests/fuzz"]  # fmt: skip

# Python keeps what it allocates until it ends, so leaks cannot be told apart: `test_memory.py`
# looks for them. A small quarantine lets the tests that measure memory measure it.
ASAN_OPTIONS = "detect_leaks=0:quarantine_size_mb=4:abort_on_error=1:allocator_may_return_null=1"
UBSAN_OPTIONS = "print_stacktrace=1:halt_on_error=1"

_PROGRAM = "int main(int count, char **words) { return words[count - 1] == 0; }\n"


def find_compiler() -> str | None:
    """The first compiler whose sanitizers are there, runtime libraries included."""
    named = [os.environ["CC"]] if "CC" in os.environ else []
    clangs = [f"clang-{version}" for version in range(21, 12, -1)]
    for compiler in (*named, "clang", *clangs, "gcc", "cc"):
        if shutil.which(compiler) and has_sanitizers(compiler):
            return compiler
    return None


def has_sanitizers(compiler: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "try.c", Path(folder) / "try"
        source.write_text(_PROGRAM)
        built = subprocess.run(
            [compiler, *SANITIZERS, str(source), "-o", str(program)],
            capture_output=True, check=False,
        )  # fmt: skip
        return built.returncode == 0 and preloads(compiler) != []


def is_clang(compiler: str) -> bool:
    told = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return "clang" in told.stdout


def preloads(compiler: str) -> list[str]:
    """The runtime libraries that Python itself was not linked with."""
    if is_clang(compiler):
        return list(_clang_runtime(compiler))
    paths = [_printed(compiler, f"-print-file-name=lib{name}.so") for name in ("asan", "ubsan")]
    return [path for path in paths if Path(path).is_absolute() and Path(path).exists()]


def _clang_runtime(compiler: str) -> Iterator[str]:
    atheris = importlib.util.find_spec("atheris")
    if atheris is not None and atheris.origin is not None:
        fuzzer = Path(atheris.origin).parent.parent / "asan_with_fuzzer.so"
        if fuzzer.exists():
            yield str(fuzzer)  # libFuzzer and the sanitizers' runtime in one
            return
    machine = os.uname().machine
    runtime = Path(_printed(compiler, f"-print-file-name=libclang_rt.asan-{machine}.so"))
    if runtime.is_absolute() and runtime.exists():
        yield str(runtime)


def _printed(compiler: str, flag: str) -> str:
    return subprocess.run(
        [compiler, flag], capture_output=True, text=True, check=True
    ).stdout.strip()


def build(compiler: str, folder: Path) -> None:
    """A copy of the checkout in `folder`, its kernels built with sanitizers."""
    skipped = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "build")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        else:
            shutil.copy2(ROOT / name, folder / name)
    flags = [*BUILD_FLAGS, *SANITIZERS]
    if is_clang(compiler):
        flags.append(COVERAGE)
    linker = f"{compiler} -shared {' '.join(flags)}"
    at_once = str(os.cpu_count() or 1)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "-j", at_once],
        cwd=folder, check=True,
        env=os.environ | {"CC": compiler, "CFLAGS": " ".join(flags), "LDSHARED": linker},
    )  # fmt: skip
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    missing = [
        path.stem
        for path in (folder / "pyspark_kafkaproto").glob("*/*.pyx")
        if not path.with_name(path.stem + suffix).exists()
    ]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not built: see the compiler's words above")


def run(compiler: str, folder: Path, arguments: list[str]) -> int:
    """Run Python on the copy; its exit code."""
    environment = os.environ | {
        "LD_PRELOAD": " ".join(preloads(compiler)),
        "ASAN_OPTIONS": ASAN_OPTIONS,
        "UBSAN_OPTIONS": UBSAN_OPTIONS,
        "KAFKAPROTO_FUZZ_BUILD": "address,undefined",
        "PYTHONMALLOC": "malloc",  # so that AddressSanitizer sees what Python allocates
        "PYTHONPATH": os.pathsep.join(
            [str(folder), *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
                            if path and Path(path).resolve() != ROOT)]
        ),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    compiler = find_compiler()
    if compiler is None:
        print("SKIPPED: no compiler with AddressSanitizer and UndefinedBehaviorSanitizer here")
        return 0
    with tempfile.TemporaryDirectory(prefix="sanitized-") as name:
        folder = Path(name)
        build(compiler, folder)
        print(f"kernels built by {compiler} {' '.join(SANITIZERS)}", flush=True)
        return run(compiler, folder, arguments or TESTS)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given[1:] if given[:1] == ["--"] else given))
