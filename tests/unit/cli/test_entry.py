"""What a process of the command line is made ready with, before any command."""

import os
from pathlib import Path

import pytest

from tests.unit.cli.processes import kafkaproto

_THREADS = Path("/proc/self/task")
_COUNTED = f"""
import os
from pyspark_kafkaproto.cli import main
try:
    main()
finally:
    import numpy
    print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("{_THREADS}")))
"""


@pytest.mark.skipif(not _THREADS.exists(), reason="threads are counted as Linux shows them")
def test_a_command_has_no_threads_for_linear_algebra():
    """numpy comes with pyarrow; each thread that it starts spins for a tenth of a second."""
    assert _after_a_command()[1:] == ["1"]
    assert _after_a_command(OPENBLAS_NUM_THREADS="2")[0] == "2"  # whoever wants them has them


def _after_a_command(**environ):
    others = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    return kafkaproto("--version", code=_COUNTED, env=others | environ).stdout.split()[-2:]
