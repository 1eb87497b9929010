"""Which query a checkpoint is of, where no task could say so."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.spark.exactly_once_stream import query_of_checkpoint


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "check point"
    found.mkdir()
    (found / "metadata").write_text('{"id":"7f1c"}')
    return found


def test_it_is_read_from_a_local_folder(folder):
    assert query_of_checkpoint(str(folder)) == "7f1c"
    assert query_of_checkpoint(f"file:{folder}") == "7f1c"
    assert query_of_checkpoint(f"file://{folder}") == "7f1c"


def test_nothing_in_a_path_is_encoded_or_cut_off(folder):
    """As Hadoop has it: these are other folders, whose queries are others."""
    for location in (folder.as_uri(), f"file:{folder}#2", f"file:{folder}?x", f"{folder}#2"):
        assert query_of_checkpoint(location) is None


def test_it_is_not_known_elsewhere(folder):
    for location in (
        None,
        "",
        "hdfs://name/folder",
        f"s3a:{folder}",
        "check point",
        str(folder / "other"),
    ):
        assert query_of_checkpoint(location) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_what_is_no_metadata_names_no_query(folder, text):
    (folder / "metadata").write_text(text)
    assert query_of_checkpoint(str(folder)) is None
