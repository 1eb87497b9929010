"""Folders of rows, each named by the offset ranges that it holds: nothing lost, nothing twice.

A folder appears whole or not at all. What a run left whose commit failed is read again by the next
one, and is replaced; a folder that is neither wholly read again nor left alone is never touched.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafkaproto import OffsetRange
from pyspark_kafkaproto.devbroker.files import FileLock
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_NAME = 100
_FACTS_FILE = "_ranges.json"
_DRAFT = "_draft"
_REPLACED = "_replaced-"
_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT))


class Folders:
    """The folders below `place`, for the records of one topic that one group has read.

    Args:
        place: a local folder.
        origin: what the offsets belong to (cluster, topic id): folders of another origin are not
            mistaken for older ones of this.
    """

    def __init__(self, place: Path, origin: Mapping[str, str]) -> None:
        self.place = place
        self.origin = dict(origin)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run away, and put in order what a killed one left behind.

        Raises:
            ConfigError: another run is at work here, nothing can be written, or Spark would write
                elsewhere.
        """
        if ":" in self.place.parts[0]:
            what = "expected a local folder: Spark takes what is before a colon for a file system"
            raise ConfigError("--out", str(self.place), what)
        lock = FileLock(self.place / "_lock")
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            is_ours = lock.try_acquire()
        except OSError as error:
            reason = f"nothing can be written there: {error.strerror}"
            raise ConfigError("--out", str(self.place), reason) from error
        if not is_ours:
            raise ConfigError("--out", str(self.place), "another run is writing here: wait for it")
        try:
            self._sweep()
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Remove what a killed run was writing, or had replaced; put back what it had not."""
        shutil.rmtree(self.place / _DRAFT, ignore_errors=True)
        for aside in list(self.place.glob(f"{_REPLACED}*")):
            if self._is_replaced(aside):
                _remove(aside)
            else:
                aside.rename(self.place / aside.name.removeprefix(_REPLACED))

    def _is_replaced(self, aside: Path) -> bool:
        """Whether another folder has its rows by now, or it has lost its facts: those go first."""
        if not (aside / _FACTS_FILE).exists():
            return True
        origin, written = _read_facts(aside)
        return any(
            other == origin and any(_overlap(one, now) for one in written for now in there)
            for other, there in map(_read_facts, self._folders())
        )

    def widened(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """`ranges` to the ends of what was written from where they start on, or from within them.

        That is of a run whose commit failed. What has come since may have taken from the share of
        one partition: its folder would be read again in part.

        Raises:
            ConfigError: one is of another cluster or topic, and there is something to read.
        """
        if not any(item.count for item in ranges):
            return list(ranges)
        written = [item for _, facts in self._facts() for item in facts]
        widened = []
        for now in ranges:
            ends = [_bounds(item)[1] for item in written if _begins_in(item, now)]
            widened.append(replace(now, stop=max(_bounds(now)[1], *ends) if ends else now.stop))
        return widened

    def replaced_by(self, ranges: Sequence[OffsetRange]) -> list[Path]:
        """Folders whose rows are all among those of `ranges`.

        Raises:
            ConfigError: one holds rows that are read again and others that are not, or rows of
                another cluster or topic: neither keeping nor removing it would be right.
        """
        found = []
        for folder, written in self._facts():
            again = [item for item in written if any(_overlap(item, now) for now in ranges)]
            if not again:
                continue
            if not all(_holds(ranges, item) for item in written):
                raise self._in_the_way(folder, _a_part(again))
            found.append(folder)
        return found

    def _facts(self) -> Iterator[tuple[Path, list[OffsetRange]]]:
        """Each folder, and what it holds.

        Raises:
            ConfigError: it is of another cluster or topic.
        """
        for folder in self._folders():
            origin, written = _read_facts(folder)
            if origin != self.origin:
                raise self._in_the_way(folder, _another_origin(origin))
            yield folder, written

    def _folders(self) -> list[Path]:
        return [file.parent for file in sorted(self.place.glob(f"ranges-*/{_FACTS_FILE}"))]

    def write(
        self,
        rows: DataFrame,
        ranges: Sequence[OffsetRange],
        check: Callable[[], None] = lambda: None,
    ) -> Path:
        """Write `rows`, which are those of `ranges`, in place of what they replace.

        Args:
            rows: to be read.
            ranges: whose.
            check: called once all rows were read, before anything is replaced; raises what speaks
                against it.

        Raises:
            ConfigError: as `replaced_by`, or the disk is full.
        """
        replaced = self.replaced_by(ranges)
        draft = self.place / _DRAFT
        facts = {"origin": self.origin, "ranges": [astuple(item) for item in ranges]}
        try:
            rows.write.mode("overwrite").parquet(str(draft))
            (draft / _FACTS_FILE).write_text(json.dumps(facts), encoding="utf-8")
            for written in (*draft.rglob("*"), draft):
                _sync(written)
        except Exception as error:
            # Spark has no class of its own for it: Java's text, deep in hundreds of lines.
            full = next((text for text in _FULL if text in str(error)), None)
            if full is None:
                raise
            remedy = (
                "nothing is committed: make room, there or in spark.local.dir, and run it again"
            )
            raise ConfigError("--out", str(self.place), f"{full}; {remedy}") from error
        check()
        # Out of the way first, and gone last: whoever kills this leaves the ones or the other.
        aside = [folder.rename(self.place / f"{_REPLACED}{folder.name}") for folder in replaced]
        folder = draft.rename(self.place / folder_name(ranges))
        _sync(self.place)  # its name
        for old in aside:
            _remove(old)
        return folder

    def _in_the_way(self, folder: Path, what: str) -> ConfigError:
        return ConfigError(
            "--out", str(folder), f"it {what} move this folder away, or give another --out"
        )


def _read_facts(folder: Path) -> tuple[dict[str, str], list[OffsetRange]]:
    """What a folder's offsets belong to, and which they are."""
    facts = json.loads((folder / _FACTS_FILE).read_text(encoding="utf-8"))
    return facts["origin"], [OffsetRange(*item) for item in facts["ranges"]]


def _remove(folder: Path) -> None:
    """Its facts first: what is left of it, should this be killed, is not taken for a whole one."""
    with suppress(OSError):  # the next run tries again
        (folder / _FACTS_FILE).unlink(missing_ok=True)
        shutil.rmtree(folder)


def _sync(path: Path) -> None:
    """Have a file or folder on the disk: what is committed nobody reads again after a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _a_part(again: Sequence[OffsetRange]) -> str:
    """Of a folder that is read again in part: it is whole, so it may as well be kept."""
    ends = " ".join(f"--to {item.topic}:{item.partition}={_bounds(item)[1]}" for item in again)
    return (
        "holds a part of what is read now: the group's offsets were moved, or records are gone "
        "since a run whose commit failed; to keep it, go on behind it (kafkaproto groups reset "
        f"GROUP {ends}), else"
    )


def _another_origin(origin: Mapping[str, str]) -> str:
    known = ", ".join(f"{name} {value}" for name, value in origin.items())
    return f"holds rows of another cluster, or of a topic that was deleted since ({known});"


def folder_name(ranges: Sequence[OffsetRange]) -> str:
    """`ranges-0.0-250_1.0-231`: partition, start and stop; a hash where that gets long."""
    name = "_".join(f"{item.partition}.{item.start}-{item.stop}" for item in ranges)
    if len(name) <= _MOST_NAME:
        return f"ranges-{name}"
    return f"ranges-{hashlib.sha256(name.encode()).hexdigest()}"


def _bounds(item: OffsetRange) -> tuple[int, int]:
    if item.start is None or item.stop is None:
        raise ConfigError("ranges", str(item), "a folder's ranges have both bounds")
    return item.start, item.stop


def _begins_in(item: OffsetRange, now: OffsetRange) -> bool:
    """Whether `item` starts inside of `now`, or where that does, which may be empty."""
    start, stop = _bounds(now)
    begin, _ = _bounds(item)
    is_same = item.topic_partition == now.topic_partition
    return is_same and (begin == start or start < begin < stop)


def _overlap(one: OffsetRange, other: OffsetRange) -> bool:
    start, stop = _bounds(one)
    other_start, other_stop = _bounds(other)
    is_same = one.topic_partition == other.topic_partition
    return is_same and max(start, other_start) < min(stop, other_stop)


def _holds(ranges: Sequence[OffsetRange], item: OffsetRange) -> bool:
    """Whether `ranges` read all of `item` (nothing of it, where it is empty)."""
    start, stop = _bounds(item)
    return start == stop or any(
        now.topic_partition == item.topic_partition
        and _bounds(now)[0] <= start
        and stop <= _bounds(now)[1]
        for now in ranges
    )
