"""The recipes of docs/security.md, each run as it stands there but for hosts, paths and secrets."""

import re
import sys
from pathlib import Path

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from tests.secure_broker import PASSWORD, TOPIC, login, quoted
from tests.token_endpoint import TokenEndpoint, token_for

pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_RECIPE = re.compile(
    r"<!-- recipe: (?P<where>.+?) -->\n```(?P<kind>\w+)\n(?P<code>.*?)```", re.DOTALL
)
HELD = TopicPartition(TOPIC, 0)


def recipes():
    return [match.groupdict() for match in _RECIPE.finditer(PAGE.read_text())]


def test_every_block_of_the_page_is_a_recipe():
    text = PAGE.read_text()
    assert text.count("```properties") + text.count("```python") == len(recipes()) > 8


@pytest.fixture
def endpoint():
    with TokenEndpoint("its-secret") as endpoint:
        yield endpoint


@pytest.fixture
def stand_in(secure, endpoint, tmp_path, monkeypatch):
    """What stands for the page's files and addresses."""
    me = secure.authority.issue("operator")
    (tmp_path / "reports.jaas").write_text(login("SCRAM-SHA-512", "reports"))
    with KafkaCluster(secure.as_user("reports")) as cluster:
        token = cluster.create_delegation_token()
    (tmp_path / "token").write_text(token_for("reports") + "\n")
    modules = tmp_path / "modules"
    modules.mkdir()
    monkeypatch.syspath_prepend(modules)
    paths = {
        "/etc/kafka/ca.pem": secure.ca,
        "/etc/kafka/client.pem": me.pem_file(tmp_path / "client.pem"),
        "/etc/kafka/ca.p12": secure.authority.pkcs12_file(tmp_path / "ca.p12", "store-secret"),
        "/etc/kafka/client.p12": me.pkcs12_file(tmp_path / "client.p12", "store-secret"),
        "/var/run/secrets/kafka/token": str(tmp_path / "token"),
        "https://login.example.com/oauth2/token": endpoint.url,
        "/run/secrets/reports.jaas": str(tmp_path / "reports.jaas"),
        "zzyZN7wWTcSKhFYGMFPRdg": token.token_id,
        "its-hmac": token.hmac.reveal(),
        'password="its-secret"': f"password={quoted(PASSWORD)}",
    }

    def replace(text, where):
        for name, real in paths.items():
            text = text.replace(name, real)
        if where in {"TLS", "MUTUAL", "BOTH"}:
            text = re.sub(r"broker-1\.example\.com:\d+", secure.broker.addresses(where), text)
        return text

    for recipe in recipes():
        if recipe["where"].startswith("module "):
            name = recipe["where"].removeprefix("module ")
            (modules / f"{name}.py").write_text(replace(recipe["code"], ""))
            monkeypatch.delitem(sys.modules, name, raising=False)
    return replace


def _properties(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line)


@pytest.mark.parametrize("number", [n for n, it in enumerate(recipes()) if " " not in it["where"]])
def test_recipe_works(stand_in, number):
    recipe = recipes()[number]
    code = stand_in(recipe["code"], recipe["where"])
    if recipe["kind"] == "python":
        names = {}
        exec(compile(code, str(PAGE), "exec"), names)
        cluster = names["cluster"]
    else:
        cluster = KafkaCluster(_properties(code))
    with cluster:
        assert cluster.get_latest_leader_offsets({HELD}) == {HELD: 3}
