"""Folders of rows: whole or not at all, replaced or left alone, never half of either."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pyspark_kafkaproto import OffsetRange
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.jobs.folders import Folders, folder_name

ORIGIN = {"cluster": "c", "topic": "t"}


class Rows:
    """Stands in for a DataFrame: writes one file, or fails half way."""

    def __init__(self, text, *, fails=None):
        self.text, self.fails, self.modes = text, fails, []

    @property
    def write(self):
        return self

    def mode(self, name):
        self.modes.append(name)
        return self

    def parquet(self, folder):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "part").write_text(self.text)
        if self.fails:
            raise RuntimeError(self.fails)


def ranges(*bounds):
    return [OffsetRange("orders", number, *item) for number, item in enumerate(bounds)]


def write(place, text, now, *, fails=None, origin=ORIGIN):
    with Folders(place, origin).locked():
        return Folders(place, origin).write(Rows(text, fails=fails), now)


def kept(place):
    return {path.name: (path / "part").read_text() for path in place.glob("ranges-*")}


def test_rows_land_in_a_folder_named_by_their_ranges(tmp_path):
    folder = write(tmp_path / "out", "1", ranges((0, 10), (5, 8)))
    assert folder == tmp_path / "out" / "ranges-0.0-10_1.5-8"
    assert kept(tmp_path / "out") == {"ranges-0.0-10_1.5-8": "1"}


def test_rows_are_on_the_disk_before_they_are_named_and_committed(tmp_path, monkeypatch):
    synced = []  # and whether that was behind the folder's naming

    def note(descriptor):
        synced.append((os.fstat(descriptor).st_ino, bool(list(tmp_path.glob("ranges-*")))))

    monkeypatch.setattr(os, "fsync", note)
    folder = write(tmp_path, "1", ranges((0, 10)))
    before = {(path.stat().st_ino, False) for path in (folder, *folder.iterdir())}
    assert len(before) == 3
    assert before < set(synced)
    assert synced[-1] == (tmp_path.stat().st_ino, True)


def test_run_after_a_failed_commit_replaces_what_was_written(tmp_path):
    write(tmp_path, "first", ranges((0, 10)))
    write(tmp_path, "again", ranges((0, 10)))
    assert kept(tmp_path) == {"ranges-0.0-10": "again"}


def test_run_after_a_failed_commit_replaces_a_shorter_range_too(tmp_path):
    write(tmp_path, "first", ranges((0, 10), (0, 5)))
    write(tmp_path, "more", ranges((0, 25), (0, 5)))
    assert kept(tmp_path) == {"ranges-0.0-25_1.0-5": "more"}


@pytest.mark.parametrize(
    ("now", "read"),
    [
        (((0, 8), (0, 52)), ((0, 30), (0, 52))),
        (((0, 0), (0, 60)), ((0, 30), (0, 60))),
        (((0, 40), (0, 20)), ((0, 40), (0, 30))),
    ],
    ids=["smaller", "nothing", "the other one's"],
)
def test_run_after_a_failed_commit_replaces_what_was_written_whatever_its_share(
    tmp_path, now, read
):
    """What came in between takes from the share that one partition has of `max_records`."""
    write(tmp_path, "first", ranges((0, 30), (0, 30)))
    widened = Folders(tmp_path, ORIGIN).widened(ranges(*now))
    assert widened == ranges(*read)
    write(tmp_path, "again", widened)
    assert kept(tmp_path) == {folder_name(widened): "again"}


@pytest.mark.parametrize(
    "now", [((30, 38), (30, 82)), ((5, 8), (30, 40)), ((30, 30), (30, 30))], ids=str
)
def test_what_was_committed_widens_nothing(tmp_path, now):
    write(tmp_path, "first", ranges((0, 30), (0, 30)))
    assert Folders(tmp_path, ORIGIN).widened(ranges(*now)) == ranges(*now)


def test_run_after_a_commit_leaves_what_was_written(tmp_path):
    write(tmp_path, "first", ranges((0, 10), (0, 5)))
    write(tmp_path, "next", ranges((10, 25), (5, 5)))
    assert kept(tmp_path) == {"ranges-0.0-10_1.0-5": "first", "ranges-0.10-25_1.5-5": "next"}


@pytest.mark.parametrize(
    ("now", "behind"),
    [
        (((5, 20), (5, 5)), "--to orders:0=10"),
        (((10, 20), (0, 5)), "--to orders:1=5"),
        (((0, 4), (0, 5)), "--to orders:0=10 --to orders:1=5"),
        (((3, 20), (0, 9)), "--to orders:0=10 --to orders:1=5"),
    ],
    ids=["moved back", "committed in part", "shorter than before", "records gone, no commit"],
)
def test_folder_that_is_read_anew_in_part_is_neither_kept_nor_removed(tmp_path, now, behind):
    """How to go on behind it is said: who moves it away loses what is gone from the topic."""
    write(tmp_path, "first", ranges((0, 10), (0, 5)))
    told = rf"ranges-0\.0-10_1\.0-5.*a part of what is read now.*reset GROUP {behind}\), else move"
    with pytest.raises(ConfigError, match=told):
        write(tmp_path, "next", ranges(*now))
    assert kept(tmp_path) == {"ranges-0.0-10_1.0-5": "first"}


@pytest.mark.parametrize("other", [{"cluster": "d", "topic": "t"}, {"cluster": "c", "topic": "u"}])
def test_folder_of_another_cluster_or_topic_is_never_replaced(tmp_path, other):
    write(tmp_path, "first", ranges((0, 10)))
    told = r"ranges-0\.0-10.*another cluster.*\(cluster c, topic t\); move this folder away"
    with pytest.raises(ConfigError, match=told):
        write(tmp_path, "next", ranges((0, 20)), origin=other)
    assert kept(tmp_path) == {"ranges-0.0-10": "first"}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "out").write_text("a file")
    place = tmp_path / "out" / "orders"
    with pytest.raises(ConfigError, match=r"'--out' is '.*/out/orders'.*Not a directory"):
        write(place, "first", ranges((0, 10)))


@pytest.mark.parametrize("name", ["s3:/bucket/rows", "a:b"])
def test_a_place_that_spark_takes_for_another_file_system_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"--out.*{name}.*expected a local folder"):
        write(Path(name), "first", ranges((0, 10)))
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / name, "first", ranges((0, 10)))
    assert kept(tmp_path / name) == {"ranges-0.0-10": "first"}


def test_write_that_fails_leaves_what_there_was_and_is_no_result(tmp_path):
    write(tmp_path, "first", ranges((0, 10)))
    with pytest.raises(RuntimeError, match="a task failed"):
        write(tmp_path, "half", ranges((0, 20)), fails="a task failed")
    assert kept(tmp_path) == {"ranges-0.0-10": "first"}
    write(tmp_path, "whole", ranges((0, 20)))
    assert kept(tmp_path) == {"ranges-0.0-20": "whole"}


def test_what_is_found_wrong_before_anything_is_replaced_leaves_it(tmp_path):
    write(tmp_path, "first", ranges((0, 10)))

    def made_again():
        assert (tmp_path / "_draft" / "part").read_text() == "again"  # all was read
        raise ConfigError("--topic", "orders", "made again")

    with pytest.raises(ConfigError, match="made again"), Folders(tmp_path, ORIGIN).locked():
        Folders(tmp_path, ORIGIN).write(Rows("again"), ranges((0, 20)), made_again)
    assert kept(tmp_path) == {"ranges-0.0-10": "first"}


def test_a_full_disk_is_named_with_what_to_do(tmp_path):
    fails = "An error occurred\nCaused by: java.io.IOException: No space left on device\n\tat java"
    told = rf"'--out' is '{tmp_path}': No space left on device; nothing is committed: make room"
    with pytest.raises(ConfigError, match=told):
        write(tmp_path, "half", ranges((0, 20)), fails=fails)
    assert kept(tmp_path) == {}
    write(tmp_path, "whole", ranges((0, 20)))
    assert kept(tmp_path) == {"ranges-0.0-20": "whole"}


def test_what_a_killed_run_was_removing_is_swept(tmp_path):
    half_removed = tmp_path / "_replaced-ranges-0.0-10"
    half_removed.mkdir()
    (half_removed / "part").write_text("old")
    write(tmp_path, "again", ranges((0, 10)))
    assert not half_removed.exists()
    assert kept(tmp_path) == {"ranges-0.0-10": "again"}


class Killed(BaseException):
    """Stands in for SIGKILL: nothing is cleaned up behind it."""


def killed_at(monkeypatch, place, now, owner, name, beginning):
    """A run that is killed where it calls `name` for a folder of this beginning."""
    real = getattr(owner, name)

    def call(path, *given, **options):
        if any(part.startswith(beginning) for part in Path(path).parts):
            raise Killed
        return real(path, *given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, call)
        with pytest.raises(Killed):
            write(place, "again", now)


@pytest.mark.parametrize("now", [((0, 10), (0, 5)), ((0, 25), (0, 9))], ids=["same", "longer"])
def test_what_a_killed_run_was_replacing_is_there_until_the_new_one_is(tmp_path, monkeypatch, now):
    """It may be all that there is of these rows: records are gone after a while."""
    write(tmp_path, "first", ranges((0, 10), (0, 5)))
    killed_at(monkeypatch, tmp_path, ranges(*now), Path, "rename", "_draft")
    with Folders(tmp_path, ORIGIN).locked():
        assert kept(tmp_path) == {"ranges-0.0-10_1.0-5": "first"}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["_lock", "ranges-0.0-10_1.0-5"]
    write(tmp_path, "again", ranges(*now))
    assert kept(tmp_path) == {folder_name(ranges(*now)): "again"}


@pytest.mark.parametrize("now", [((0, 10), (0, 5)), ((0, 25), (0, 9))], ids=["same", "longer"])
@pytest.mark.parametrize(
    ("owner", "name", "is_whole"), [(Path, "unlink", 1), (shutil, "rmtree", 0)]
)
def test_what_was_replaced_does_not_come_back(tmp_path, monkeypatch, now, owner, name, is_whole):
    write(tmp_path, "first", ranges((0, 10), (0, 5)))
    killed_at(monkeypatch, tmp_path, ranges(*now), owner, name, "_replaced-")
    new = folder_name(ranges(*now))
    assert kept(tmp_path) == {new: "again"}
    left = tmp_path / "_replaced-ranges-0.0-10_1.0-5"
    assert len(list(left.glob("_ranges.json"))) == is_whole  # gone before a row is
    with Folders(tmp_path, ORIGIN).locked():
        assert sorted(path.name for path in tmp_path.iterdir()) == ["_lock", new]


def test_second_run_at_the_same_time_is_kept_away(tmp_path):
    with (
        Folders(tmp_path, ORIGIN).locked(),
        pytest.raises(ConfigError, match="another run is writing here"),
        Folders(tmp_path, ORIGIN).locked(),
    ):
        raise AssertionError("both had the lock")


def test_folder_of_many_partitions_has_a_name_that_file_systems_take(tmp_path):
    many = ranges(*[(0, 10**12)] * 500)
    folder = write(tmp_path, "1", many)
    assert folder.name == folder_name(many)
    assert len(folder.name) < 100
    written = json.loads((folder / "_ranges.json").read_text())["ranges"]
    assert [OffsetRange(*item) for item in written] == many
