"""tools/archive_classes.py: when archives are made, and that they are whole."""

import os

import pytest

from tools import archive_classes

NAMES = {"kafka.jsa", "spark.jsa"}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes archives as of jars from the second 1000, and tells how often that was so far."""
    monkeypatch.setattr(archive_classes, "_youngest_jars", lambda: 1000.0)
    runs = []

    def make(names=NAMES):
        def record(folder):
            runs.append(folder)
            for name in names:
                (folder / name).write_text(f"archive {len(runs)}")

        monkeypatch.setattr(archive_classes, "_record", record)
        archive_classes.make(tmp_path / "archives")
        return len(runs)

    make.folder = tmp_path / "archives"
    return make


def test_archives_are_made_once(made):
    assert [made(), made()] == [1, 1]
    assert {path.name for path in made.folder.iterdir()} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_one_that_is_older_than_the_jars_is_made_again(made, name):
    made()
    os.utime(made.folder / name, (999, 999))
    assert made() == 2
    assert (made.folder / name).read_text() == "archive 2"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_one_that_is_missing_is_made(made, name):
    made()
    (made.folder / name).unlink()
    assert made() == 2


def test_what_was_not_written_is_an_error(made):
    with pytest.raises(FileNotFoundError):
        made({"kafka.jsa"})
    assert made() == 2
