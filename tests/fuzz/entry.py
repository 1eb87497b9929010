#!/usr/bin/env python3
"""One fuzzing process, which `run.py` starts: `KAFKAPROTO_FUZZ=TARGET entry.py [arguments]`.

The arguments are libFuzzer's. Executable, and told its target by the environment, because libFuzzer
starts itself again, with its own arguments, when it merges corpora.

Coverage is that of the Python code, the reference decoder included, which has the kernel's branches
one by one; under a kernel built by `sanitized.py` with clang it is the kernel's own too.
"""

from __future__ import annotations

import os
import sys

import atheris

_INSTRUMENTED = ["pyspark_kafkaproto.records", "pyspark_kafkaproto.wire"]


def main() -> None:
    with atheris.instrument_imports(include=_INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    atheris.Setup(sys.argv, TARGETS[os.environ["KAFKAPROTO_FUZZ"]])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
