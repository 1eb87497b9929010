"""What a reader has had committed, what is under way, and what is to be told of it.

All of it is the reader's thread's; the keeper sends what is given here, in its order. What the
positions are is `reading`'s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter

from pyspark_kafkaproto.client.group.membership import Commit, Membership
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.reading.directory import NO_EPOCH
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.errors import DeadlineExceeded, KafkaProtoError, another
from pyspark_kafkaproto.net import ConsumerConfig, Deadline

_log = logging.getLogger(__name__)

OnCommit = Callable[[Mapping[TopicPartition, int], KafkaProtoError | None], object]
Positions = Mapping[TopicPartition, CommittedOffset]


class Commits:
    """The commits of one member.

    Args:
        config: when to commit by itself, and for how long to try.
        membership: whom they are given to.
        seen: tells what positions stand on now.
        on_commit: told of each that was not waited for.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        membership: Membership,
        seen: Callable[[], Seen],
        on_commit: OnCommit | None,
    ) -> None:
        self._config = config
        self._membership = membership
        self._seen = seen
        self._on_commit = on_commit
        self._unwaited: list[Commit] = []
        self._known: dict[TopicPartition, CommittedOffset] = {}  # committed last
        self._known_ids: dict[str, bytes] = {}  # of their topics
        self._failed: Exception | None = None  # the listener, as the last commit was given
        self._may_come_late = False  # an earlier one, which puts the group back
        self._due_at = time.monotonic() + config.auto_commit_interval_s

    @property
    def timeout_s(self) -> float:
        """For how long a commit is tried."""
        return self._config.client.default_api_timeout_s

    def is_at(self, partition: TopicPartition, offset: int) -> bool:
        """Whether this member has committed that offset last."""
        known = self._known.get(partition)
        return known is not None and known.offset == offset

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was committed of all others."""
        self._known = {item: at for item, at in self._known.items() if item in partitions}
        topics = {item.topic for item in self._known}
        self._known_ids = {name: at for name, at in self._known_ids.items() if name in topics}

    def give(self, offsets: Positions, *, wait: bool) -> None:
        """Have them committed; errors as of `Consumer.commit`."""
        commit = self._send(offsets)
        if commit is None:
            return
        if wait:
            self._see_through(commit, Deadline.after(self.timeout_s))
        else:
            self._unwaited.append(commit)

    def moved(self, positions: Positions) -> dict[TopicPartition, CommittedOffset]:
        """Those of them that were not committed yet, or not given to be.

        Where an earlier commit may come late, what was committed since is said again, as it was.
        """
        now = self._seen().topic_ids
        known = _of_the_same_topics(self._known, self._known_ids, now)
        for commit in self._unwaited:
            known |= _of_the_same_topics(commit.offsets, commit.topic_ids, now)
        moved = {item: at for item, at in positions.items() if _has_moved(known.get(item), at)}
        if self._may_come_late:
            return {item: known[item] for item in positions.keys() - moved.keys()} | moved
        return moved

    def give_when_due(self, positions: Callable[[], Positions]) -> None:
        """What earlier polls gave, every auto.commit.interval.ms; without waiting."""
        now = time.monotonic()
        if self._config.enable_auto_commit and now >= self._due_at:
            self._due_at = now + self._config.auto_commit_interval_s
            self.give(self.moved(positions()), wait=False)

    def give_last(self, positions: Callable[[], Positions], deadline: Deadline) -> None:
        """The automatic commit before partitions are given up: the last chance, so it is awaited.

        An error is not the reader's: what was not committed is read again, by whoever has it then.
        What the listener fails with is raised where the others are seen through, which comes next.
        """
        self._failed = self._report_all()
        try:
            if commit := self._send(self.moved(positions()), is_last=True):
                self._wait_for(commit, deadline)
                later = self._report_all()
                self._failed = self._failed or later
                self._note(commit)
                if commit.error is not None:
                    raise another(commit.error)
        except KafkaProtoError as error:
            _log.warning("the positions were not committed, rows will be read again: %s", error)

    def see_through(self, deadline: Deadline) -> None:
        """Wait for what was not waited for, while it can still be said, and tell how it went."""
        failed, self._failed = self._failed, None
        if self._unwaited:
            self._membership.wait_for(self._unwaited[-1], deadline)
        if failed is not None:
            raise failed
        self.report()

    def see_last_through(self, deadline: Deadline) -> None:
        """The same of who closes: what is not answered by then has failed, as far as is known.

        Where the listener fails the others are told of all the same: there is no next time.
        """
        said = ((commit, self._last_error_of(commit, deadline)) for commit in list(self._unwaited))
        later = self._conclude_all(said)
        failed, self._failed = self._failed or later, None
        if failed is not None:
            raise failed

    def _report_all(self) -> Exception | None:
        """As `report`, of all whatever the listener fails with; that."""
        done = [(commit, commit.error) for commit in self._unwaited if commit.is_done]
        return self._conclude_all(done)

    def _conclude_all(
        self, said: Iterable[tuple[Commit, KafkaProtoError | None]]
    ) -> Exception | None:
        """Tell of each, with its error; what the listener failed with first."""
        failed: Exception | None = None
        for commit, error in said:
            if commit not in self._unwaited:  # the listener has committed, and was told of others
                continue
            try:
                self._conclude(commit, error)
            except Exception as why:  # noqa: BLE001 - for the caller to raise
                failed = failed or why
        return failed

    def _last_error_of(self, commit: Commit, deadline: Deadline) -> KafkaProtoError | None:
        try:
            self._membership.wait_for(commit, deadline)
        except DeadlineExceeded as error:
            return error
        return commit.error

    def report(self) -> None:
        """Tell what became of commits that nobody waited for.

        Where the listener fails, or Ctrl-C comes, the others are told of the next time: of one that
        failed nobody else would hear, and it would count as under way.
        """
        while (commit := next(filter(_is_done, self._unwaited), None)) is not None:
            self._conclude(commit, commit.error)

    def _conclude(self, commit: Commit, error: KafkaProtoError | None) -> None:
        """It does not count as under way any more, and is told of."""
        if commit.is_done:
            self._note(commit)
        self._unwaited.remove(commit)
        self._tell(commit, error)

    def _tell(self, commit: Commit, error: KafkaProtoError | None) -> None:
        if error is not None:
            _log.warning("a commit that was not waited for failed: %s", error)
        if self._on_commit is not None:
            offsets = {item: committed.offset for item, committed in commit.offsets.items()}
            self._on_commit(offsets, error)

    def _send(self, offsets: Positions, *, is_last: bool = False) -> Commit | None:
        """`is_last`: none comes behind it that would mend one to another topic of that name."""
        self._membership.check_open()
        if not offsets:
            return None
        seen = self._seen()
        topics = {item.topic for item in offsets} & seen.topic_ids.keys()
        topic_ids = {topic: seen.topic_ids[topic] for topic in topics}
        is_doubtful = is_last or not seen.refused_ids.isdisjoint(topic_ids.values())
        deadline = Deadline.after(self.timeout_s)
        return self._membership.commit(offsets, topic_ids, deadline, is_doubtful=is_doubtful)

    def _see_through(self, commit: Commit, deadline: Deadline) -> None:
        self._wait_for(commit, deadline)
        self.report()
        self._note(commit)
        if commit.error is not None:
            raise another(commit.error)

    def _wait_for(self, commit: Commit, deadline: Deadline) -> None:
        try:
            self._membership.wait_for(commit, deadline)
        finally:  # whoever gave up waiting does not hear what became of it
            self._may_come_late |= not commit.is_done

    def _note(self, commit: Commit) -> None:
        self._may_come_late |= commit.is_in_doubt
        if commit.error is None:
            known = _of_the_same_topics(self._known, self._known_ids, commit.topic_ids)
            self._known = {**known, **commit.offsets}
            self._known_ids |= commit.topic_ids


_is_done = attrgetter("is_done")


def _of_the_same_topics(
    offsets: Positions, topic_ids: Mapping[str, bytes], now: Mapping[str, bytes]
) -> dict[TopicPartition, CommittedOffset]:
    """Those of topics that were not made again since: of one that was a group has nothing."""
    gone = {topic for topic, known in topic_ids.items() if now.get(topic, known) != known}
    return {item: at for item, at in offsets.items() if item.topic not in gone}


def _has_moved(known: CommittedOffset | None, now: CommittedOffset) -> bool:
    """Whether a position is to be committed, of which `known` is.

    Where other records have come to stand before the same offset, it is. What was given without an
    epoch, perhaps with a text, stays as it is.
    """
    if known is None or known.offset != now.offset:
        return True
    return known.leader_epoch not in (NO_EPOCH, now.leader_epoch)
