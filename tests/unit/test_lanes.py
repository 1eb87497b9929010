"""Two commands side by side: what they print, how they end, what Ctrl-C does to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pyspark_kafkaproto.net import Deadline
from tests.lanes import side_by_side

# Says that it is there, and takes its time to leave when it is asked to.
LEAVES_SLOWLY = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
try:
    (folder / "there").touch()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)
    print("put away", folder.name)
"""


def command(source, *arguments):
    return [sys.executable, "-c", source, *map(str, arguments)]


@pytest.mark.parametrize(("kept", "shown", "code"), [(0, 0, 0), (5, 0, 5), (0, 1, 1), (5, 1, 1)])
def test_a_failure_of_either_is_one(kept, shown, code):
    exits = "import sys; sys.exit(int(sys.argv[1]))"
    assert side_by_side(command(exits, kept), command(exits, shown)) == code


def test_what_is_kept_comes_last(capfd):
    early = command("print('first to speak')")
    late = command("import time; time.sleep(0.3); print('first to be heard')")
    assert side_by_side(early, late) == 0
    assert capfd.readouterr().out.split("\n")[:2] == ["first to be heard", "first to speak"]


def test_ctrl_c_waits_for_both_to_put_their_things_away(tmp_path):
    folders = [tmp_path / "kept", tmp_path / "shown"]
    for folder in folders:
        folder.mkdir()
    commands = [command(LEAVES_SLOWLY, folder) for folder in folders]
    source = f"import sys, tests.lanes; sys.exit(tests.lanes.side_by_side(*{commands!r}))"
    lanes = subprocess.Popen(command(source), stdout=subprocess.PIPE, start_new_session=True)
    with lanes:
        deadline = Deadline.after(60)
        while not all((folder / "there").exists() for folder in folders):
            deadline.check("waiting for both")
            time.sleep(0.05)
        os.killpg(lanes.pid, signal.SIGINT)
        said, _ = lanes.communicate(timeout=60)
    assert lanes.returncode == 130
    assert sorted(said.decode().splitlines()) == ["put away kept", "put away shown"]
