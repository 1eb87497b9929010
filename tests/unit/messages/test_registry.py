"""From key or name to classes, and only those that were asked for."""

import subprocess
import sys

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.messages import find_api, request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse


def test_an_api_by_key_and_by_name():
    assert find_api(1) is find_api("Fetch")
    assert find_api(1).versions == FetchRequest.VERSIONS
    assert find_api(9999) is None
    assert find_api("Fetsch") is None


def test_classes_by_key_name_and_request():
    assert request_class(1) is request_class("Fetch") is FetchRequest
    assert response_class(1) is response_class("Fetch") is FetchResponse
    assert response_class(FetchRequest) is FetchResponse


@pytest.mark.parametrize("api", [9999, "Fetsch"])
def test_an_unknown_api(api):
    with pytest.raises(LocalProtocolError, match=repr(api)):
        request_class(api)


@pytest.mark.parametrize("find", [request_class, response_class])
def test_the_table_and_the_classes_agree(find):
    classes = [find(api.key) for api in APIS]
    found = [(cls.API_KEY, cls.API_NAME, cls.VERSIONS, cls.FLEXIBLE_FROM) for cls in classes]
    assert found == [(api.key, api.name, api.versions, api.flexible_from) for api in APIS]


def test_keys_and_names_are_unique():
    assert len({api.key for api in APIS}) == len({api.name for api in APIS}) == len(APIS)


@pytest.mark.slow
def test_nothing_is_loaded_that_was_not_asked_for():
    script = (
        "import sys, pyspark_kafkaproto.messages as m; m.request_class('Fetch');"
        "print(sorted(n for n in sys.modules if n.startswith(m.__name__ + '.')),"
        " 'dataclasses' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = [f"pyspark_kafkaproto.messages.{name}" for name in ("apis", "fetch", "registry")]
    assert run.stdout.strip() == f"{loaded} False"
