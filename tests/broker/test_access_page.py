"""What docs/access.md shows is what the commands print: they are run in the page's order."""

from __future__ import annotations

import json
import re

import pytest

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.net import Deadline
from tests.pages import DOCS, check_prints, commands_of, examples

pytestmark = pytest.mark.broker

PAGE = "access.md"
TOKEN_ID = "zzyZN7wWTcSKhFYGMFPRdg"  # of the page
OF_TOKENS = "kafkaproto tokens"


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
    shown = [item for item in examples(PAGE) if OF_TOKENS not in item[0]]
    assert commands_of(shown) == {"acls", "users", "quotas"}
    for line, text in shown:
        check_prints(line, text, servers)


def test_each_command_about_tokens_prints_what_the_page_shows(secure, tmp_path, monkeypatch):
    """They are for those who log in, which nobody does at the page's dev broker."""
    own = secure.as_user("reports")
    with KafkaCluster(own) as cluster:
        end_all_tokens(cluster)
        monkeypatch.chdir(tmp_path)
        # JSON's escapes are among those of Java's properties.
        lines = [f"{name}={json.dumps(value)[1:-1]}\n" for name, value in own.items()]
        (tmp_path / "reports.properties").write_text("".join(lines))
        shown = [item for item in examples(PAGE) if OF_TOKENS in item[0]]
        assert len(shown) >= 4
        token_id = TOKEN_ID
        for line, text in shown:
            check_prints(line.replace(TOKEN_ID, token_id), text, own["bootstrap.servers"], plain)
            if " create " in line:
                (token_id,) = {token.token_id for token in cluster.describe_delegation_tokens()}
    assert "tokenauth" in (tmp_path / "token.properties").read_text()


def end_all_tokens(cluster):
    """Those that other tests have left."""
    for token in cluster.describe_delegation_tokens({"User:reports"}):
        cluster.expire_delegation_token(token)
    deadline = Deadline.after(10)
    while cluster.describe_delegation_tokens():
        deadline.check("waiting for the end of all tokens")


def plain(text):
    """Without what is another each time."""
    text = re.sub(r"\b[\w-]{22}(?= )", "TOKEN", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text).strip("\n")
