"""Pages of docs/ that show commands (`    $ kafkaproto …`) with what they print below."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

from click.testing import CliRunner

from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.net import Deadline

DOCS = Path(__file__).parents[1] / "docs"
_COMMAND = re.compile(
    r"^    \$ (?P<line>.*)\n(?P<shown>(?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.MULTILINE
)
_NEWS_TRAVELS_S = 10.0


def examples(page: str) -> list[tuple[str, str]]:
    """(line, what is shown below it) of each command of the page, in its order."""
    return _COMMAND.findall((DOCS / page).read_text())


def commands_of(shown: list[tuple[str, str]]) -> set[str]:
    """The first word behind `kafkaproto` of each."""
    return {shlex.split(line.rpartition(" | ")[2])[1] for line, _ in shown}


def printed_by(line: str, servers: str) -> str:
    """What the shell would show."""
    before, is_piped, words = line.rpartition(" | ")
    given = subprocess.run(before, shell=True, check=True, capture_output=True).stdout
    _, *arguments = shlex.split(words)
    runner = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": servers})
    done = runner.invoke(kafkaproto, arguments, input=given if is_piped else None)
    assert done.exit_code == 0, done.output
    return done.output


def check_prints(
    line: str, shown: str, servers: str, plain: Callable[[str], str] = lambda text: text.strip("\n")
) -> None:
    """Run the command, and compare what it prints with what is shown, both made `plain`.

    What only looks may look again for a moment: a change has to reach the broker that is asked.
    """
    deadline = Deadline.after(_NEWS_TRAVELS_S)
    looks = " list" in line or " describe" in line
    while True:
        printed, expected = plain(printed_by(line, servers)), plain(dedent(shown))
        if printed == expected or not looks or deadline.has_passed:
            break
    assert printed == expected, line
