#!/usr/bin/env python3
"""One fuzzing process, which `run.py` starts: `KAFKAPROTO_FUZZ=TARGET entry.py [arguments]`.

The arguments are libFuzzer's. Executable, and told its target by the environment, because libFuzzer
starts itself again, with its own arguments, when it merges corpora. `KAFKAPROTO_FUZZ_COUNTS` names
a file for how much was done, which is there however the process ends: `Counts`.

Coverage is that of the Python code, the reference decoder included, which has the kernel's branches
one by one; under a kernel built by `sanitized.py` with clang it is the kernel's own too. A flurry
does not run the reference: without clang it sees codecs alone, and lives on the corpus that the
others found. What the kernel calls for each header and refusal is left uninstrumented there: it
would take more time than the decoding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

from tests.fuzz.campaign import Counts, corpus_of


def counting(target: Callable[[bytes], int | None], counts: Counts) -> Callable[[bytes], None]:
    """`target`, counted: one execution a call, or as many as it says it made of the input."""

    def read(data: bytes) -> None:
        executions = target(data)
        counts.add(1 if executions is None else executions)

    return read


# Run by the kernel too, several times for each input; and what makes inputs.
_SHARED = tuple(
    f"pyspark_kafkaproto.{name}"
    for name in (
        "errors", "records.batch", "records.encoding", "records.legacy", "records.transactions",
    )
)  # fmt: skip


def main() -> None:
    name = os.environ["KAFKAPROTO_FUZZ"]
    with atheris.instrument_imports(
        include=["pyspark_kafkaproto"], exclude=() if corpus_of(name) == name else _SHARED
    ):
        from tests.fuzz.flurry import ALL_TARGETS
    target = ALL_TARGETS[name]
    if path := os.environ.get("KAFKAPROTO_FUZZ_COUNTS"):
        target = counting(target, Counts(Path(path)))
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
