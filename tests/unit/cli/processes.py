"""Commands in processes of their own: signals, pipes and full disks are the system's."""

import subprocess
import sys

MAIN = "from pyspark_kafkaproto.cli import main; main()"


def command(*words, code=MAIN):
    """The words that run `kafkaproto` with `words`."""
    return [sys.executable, "-c", code, *map(str, words)]


def kafkaproto(*words, code=MAIN, **options):
    """A command, to its end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.run(command(*words, code=code), timeout=30, check=False, **pipes)
