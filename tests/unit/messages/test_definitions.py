"""How tools/ reads Kafka's definitions: comments, defaults, unstable versions, dropped fields."""

import importlib
from pathlib import Path
from zipfile import ZipFile

import pytest

TOOLS = Path(__file__).parents[3] / "tools"

NEW_REQUEST = """
// A comment with "quotes".
{ "apiKey": 7, "type": "request", "listeners": ["broker"], "name": "SampleRequest",
  "validVersions": "2-4", "flexibleVersions": "3+", "latestVersionUnstable": %s,
  // Between the fields.
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "//no-comment" },
    { "name": "MaxBytes", "type": "int32", "versions": "2+", "default": "0x7fffffff" },
    { "name": "OldLimit", "type": "int32", "versions": "0-1", "default": -2 },
    { "name": "Epoch", "type": "int64", "versions": "4+", "taggedVersions": "4+", "tag": 0 },
    { "name": "NewName", "type": "int8", "versions": "3+" },
    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Last", "type": "bool", "versions": "0+", "default": "true" } ] } ] }
"""
OLD_REQUEST = """
{ "apiKey": 7, "type": "request", "listeners": ["broker"], "name": "WasCalledThis",
  "validVersions": "0-3", "flexibleVersions": "3+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+" },
    { "name": "Dropped", "type": "int32", "versions": "0-1" },
    { "name": "OldName", "type": "int8", "versions": "3+" },
    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "First", "type": "int64", "versions": "0" },
      { "name": "Last", "type": "bool", "versions": "0+" } ] } ] }
"""
CONTROLLERS_ONLY = """
{ "apiKey": 8, "type": "request", "listeners": ["controller"], "name": "OtherRequest",
  "validVersions": "0", "flexibleVersions": "none", "fields": [] }
"""


@pytest.fixture
def definitions(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("kafka_definitions")


def jar(path, *texts):
    with ZipFile(path, "w") as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"common/message/Message{number}.json", text)
        archive.writestr("common/message/README.md", "not a definition")
    return path


@pytest.fixture
def request_fact(definitions, tmp_path):
    new = jar(tmp_path / "new.jar", NEW_REQUEST % "false", CONTROLLERS_ONLY)
    (fact,) = definitions.read_messages(new, jar(tmp_path / "old.jar", OLD_REQUEST))
    return fact


def test_versions_are_those_of_both_releases(request_fact):
    assert (request_fact.name, request_fact.api_key) == ("SampleRequest", 7)
    assert (request_fact.versions, request_fact.flexible_from) == ((0, 4), 3)


def test_an_unstable_version_does_not_count(definitions, tmp_path):
    new = jar(tmp_path / "new.jar", NEW_REQUEST % "true")
    (fact,) = definitions.read_messages(new, jar(tmp_path / "old.jar"))
    assert fact.versions == (2, 3)
    assert [field.name for field in fact.fields] == ["Url", "MaxBytes", "NewName", "Topics"]


def test_a_dropped_field_stands_where_it_stood(request_fact):
    names = ["Url", "Dropped", "MaxBytes", "OldLimit", "Epoch", "NewName", "Topics"]
    assert [field.name for field in request_fact.fields] == names
    assert [field.name for field in request_fact.fields[-1].kind.fields] == ["First", "Last"]


def test_defaults_and_tags(request_fact):
    fields = {field.name: field for field in request_fact.fields}
    assert fields["Url"].default == "//no-comment"
    assert fields["MaxBytes"].default == 2**31 - 1
    assert fields["OldLimit"].default == -2
    assert fields["Epoch"].tag == 0
    assert fields["Epoch"].has_default is False
    assert fields["Topics"].kind.fields[1].default is True
