"""What docs/access.md shows is what the commands print: they are run in the page's order."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.devbroker import DevBroker
from tests.pages import DOCS, check_prints, commands_of, examples

pytestmark = pytest.mark.broker

PAGE = "access.md"


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """The dev broker of the page, with the properties that it is started with there."""
    start = (DOCS / PAGE).read_text().partition("devbroker start")[2].partition("\n\n")[0]
    pairs = (word.split("=", 1) for word in start.split() if "=" in word)
    with DevBroker(tmp_path_factory.mktemp("page"), properties=dict(pairs)) as broker:
        yield broker.bootstrap_servers


def test_each_command_prints_what_the_page_shows(servers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports.password").write_text("its-secret\n")
    shown = examples(PAGE)
    assert commands_of(shown) == {"acls", "users", "quotas"}
    for line, text in shown:
        check_prints(line, text, servers)
