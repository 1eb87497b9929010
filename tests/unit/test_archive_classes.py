"""tools/archive_classes.py: when an archive is made, and that it is whole."""

import os

import pytest

from tools import archive_classes


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes the archive as of jars from the second 1000, and tells how often that was so far."""
    monkeypatch.setattr(archive_classes, "_youngest_jars", lambda: 1000.0)
    archive, runs = tmp_path / "kafka.jsa", []

    def make(text="archive"):
        def run(target):
            runs.append(target)
            target.write_text(text)
            if not text:
                raise KeyboardInterrupt

        archive_classes._made(archive, run)
        return len(runs)

    make.archive = archive
    return make


def test_an_archive_is_made_once(made):
    assert [made(), made()] == [1, 1]
    assert made.archive.read_text() == "archive"


def test_one_that_is_older_than_the_jars_is_made_again(made):
    made()
    os.utime(made.archive, (999, 999))
    assert made("new") == 2
    assert made.archive.read_text() == "new"


def test_one_that_was_not_finished_is_none(made):
    with pytest.raises(KeyboardInterrupt):
        made("")
    assert not made.archive.exists()
    assert made() == 2
