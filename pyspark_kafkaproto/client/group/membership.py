"""What the two threads of a member share: its state, its generation, its commits under way.

The reader's thread polls and lets partitions go, the keeper's speaks with the coordinator. Every
change is one method here, under one lock; nothing here waits for a broker.

    JOINING ──joined──▶ STABLE ──rebalance──▶ REBALANCING ──released──▶ JOINING
                          └───────lost───────▶ LOST ───────released──▶ JOINING
    anything ──fail──▶ FAILED ──released──▶ JOINING, where the error is one that may pass
    anything ──close──▶ CLOSED

By the eager assignors of the classic protocol all partitions are given up at once, and REBALANCING
is when. By the cooperative one, and in the protocol of KIP-848, a member stays STABLE while what it
is to read changes, and says what it reads.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.error_codes import (
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net.retry import is_retriable

NO_GENERATION = -1
CLOSED = "the consumer is closed"
# Others can undo these: who has seen the error, and polls on, asks to be let in again.
_MAY_PASS: Final = (
    FENCED_MEMBER_EPOCH,  # of who joins: somebody is in its way
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,  # a feature of the cluster that is switched off
)


class State(Enum):
    """Where a member is."""

    JOINING = "joining"
    STABLE = "stable"
    REBALANCING = "rebalancing"
    LOST = "lost"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Commit:
    """Offsets to commit, and how that went.

    Attributes:
        offsets: the next one to read, per partition.
        topic_ids: of the topics that these are offsets of, as far as they are known.
        tenure: of the membership that commits.
        deadline: until when it is tried again.
        number: how many were given before.
        is_doubtful: whether another topic may have taken the name of one of these.
        left: what of `offsets` is not committed yet, as far as is known.
        done: what was committed before it was to go apart.
        is_apart: whether it goes in a request of its own.
        is_late: whether something of it was given up before it was committed.
        is_in_doubt: whether a request for it was not answered, which may come late.
        failures: what kept it from being done, and when that was met first.
        is_done: whether it was answered, well or with `error`.
    """

    offsets: Mapping[TopicPartition, CommittedOffset]
    topic_ids: Mapping[str, bytes]
    tenure: int
    deadline: Deadline
    number: int = 0
    is_doubtful: bool = False
    left: Mapping[TopicPartition, CommittedOffset] = field(init=False)
    done: set[TopicPartition] = field(default_factory=set)
    is_apart: bool = False
    is_late: bool = False
    is_in_doubt: bool = False
    failures: dict[str, float] = field(default_factory=dict)
    is_done: bool = False
    error: KafkaProtoError | None = None

    def __post_init__(self) -> None:
        self.left = self.offsets


class View(NamedTuple):
    """What a reader has to know at once: where the member is, who it is, and what it is to read."""

    state: State
    member: GroupMember
    tenure: int
    assignment: frozenset[TopicPartition]
    changes: int


class Membership:
    """The state of one member.

    Attributes:
        state: see the module.
        member: who it is to the coordinator; without a generation while it is none.
        tenure: counts how often it has become a member: what was read in one may be committed in it
            alone. Where all is given up at each rebalance, each generation is one.
        assignment: what it is to read.
        changes: counts how often that has become something else.
        owned: what its reader reads.
        reason: why it joins the next time, for the broker's log (KIP-800).
        error: why it FAILED.
    """

    def __init__(self, instance_id: str | None = None) -> None:
        # The reader takes it by itself: `with` and `wait` of a Condition are functions of Python,
        # in which an interrupt would leave it taken for ever, or become another error.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # the keeper waits for it
        self._news = threading.Lock()  # let go of at news: the reader waits for it
        self._polled_at = time.monotonic()
        self._commits: list[Commit] = []
        self._given = self._answered = 0  # commits
        # How many were given before; empty where all of them are answered.
        self._given_up: dict[TopicPartition, int] = {}
        self._refusal: KafkaProtoError | None = None
        self._reader: weakref.ref[object] | None = None
        self.state = State.JOINING
        self.member = GroupMember("", NO_GENERATION, instance_id)
        self.tenure = 0
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.changes = 0
        self.owned: frozenset[TopicPartition] = frozenset()
        self.reason = ""
        self.error: KafkaProtoError | None = None

    @property
    def is_member(self) -> bool:
        """Whether the coordinator counts with it, as far as is known."""
        return self.state in (State.STABLE, State.REBALANCING)

    @property
    def view(self) -> View:
        """All of it as it is at one moment."""
        with self._lock:
            return View(self.state, self.member, self.tenure, self.assignment, self.changes)

    # The reader's side

    def read_by(self, reader: object) -> None:
        """Whose it is: it ends when that is gone, be it without a word."""
        self._reader = weakref.ref(reader)

    def check_open(self) -> None:
        """Refuse whoever comes too late.

        Raises:
            LocalProtocolError: the consumer is closed.
        """
        if self.state is State.CLOSED:
            raise LocalProtocolError(CLOSED)

    def polled(self) -> None:
        """The reader is alive: max.poll.interval.ms begins anew."""
        with self._lock:
            self._polled_at = time.monotonic()

    def released(self) -> None:
        """The reader has let its partitions go (or has seen the error): join again."""
        with self._lock:
            passes = _may_pass(self.error)
            if passes and self.state in (State.REBALANCING, State.LOST, State.FAILED):
                self.assignment = self.owned = frozenset()
                self.error = None
                self._become(State.JOINING)

    def claim(self, seen: View) -> bool:
        """The reader reads what `seen` assigns from now on, where that is so still; else False.

        What has been taken away since may be read by others by now; what has come back since then
        is not where it was.
        """
        with self._lock:
            now = (self.state, self.tenure, self.changes)
            is_ours = now == (State.STABLE, seen.tenure, seen.changes)
            if is_ours:
                self.owned = seen.assignment
            return is_ours

    def give_up(self, partitions: frozenset[TopicPartition]) -> None:
        """The reader does not read these any more, nor may it commit what it has read of them."""
        with self._lock:
            self.owned -= partitions
            if self._answered < self._given:
                self._given_up |= dict.fromkeys(partitions, self._given)
            self._tell()

    def commit(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        topic_ids: Mapping[str, bytes],
        deadline: Deadline,
        *,
        is_doubtful: bool = False,
    ) -> Commit:
        """Have `offsets` committed by `deadline`, after all that were given before."""
        with self._lock:
            commit = Commit(offsets, topic_ids, self.tenure, deadline, self._given, is_doubtful)
            self._given += 1
            self._commits.append(commit)
            if self._refusal is not None:
                self._answer_all(self._refusal)
            self._tell()
            return commit

    def wait_for(self, commit: Commit, deadline: Deadline) -> None:
        """Return once `commit` is done, or raise DeadlineExceeded."""
        while not self._waited_for(lambda: commit.is_done, deadline):
            deadline.check("commit offsets")

    def wait_for_change(self, seen: View, deadline: Deadline) -> None:
        """Return once it is elsewhere, or to read something else, or the deadline has passed."""

        def has_changed() -> bool:
            return (self.state, self.changes) != (seen.state, seen.changes)

        self._waited_for(has_changed, deadline)

    def _waited_for(self, is_so: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait, and have the lock only to look; False: it is not so by then."""
        while True:
            with self._lock:
                if is_so():
                    return True
            if deadline.has_passed:
                return False
            self._news.acquire(timeout=deadline.remaining_s)

    def close(self) -> None:
        """Nothing is to be said any more."""
        with self._lock:
            self._become(State.CLOSED)

    # The keeper's side

    def joined(self, member: GroupMember, assignment: frozenset[TopicPartition]) -> None:
        """It has become a member."""
        with self._lock:
            self.member, self.assignment = member, assignment
            self.tenure += 1
            self.changes += 1
            if self.state is State.JOINING:
                self._become(State.STABLE)

    def goes_on(self, member: GroupMember, assignment: frozenset[TopicPartition]) -> None:
        """It is the same member in another epoch, and perhaps to read something else."""
        with self._lock:
            if self.state is State.STABLE:
                self.member = member
                if assignment != self.assignment:
                    self.assignment = assignment
                    self.changes += 1
                    self._tell()

    def named(self, member_id: str) -> None:
        """The coordinator knows the member under this id, or ("") under none."""
        with self._lock:
            self.member = GroupMember(member_id, NO_GENERATION, self.member.instance_id)

    def rebalance(self, reason: str) -> None:
        """The group shares out anew: the reader is to let its partitions go."""
        with self._lock:
            if self.state is State.STABLE:
                self.reason = reason
                self._become(State.REBALANCING)

    def lost(self, reason: str, *, member_id: str = "") -> None:
        """The generation is over without us: what it read is read by others now."""
        with self._lock:
            self.member = GroupMember(member_id, NO_GENERATION, self.member.instance_id)
            if self.is_member:
                self.reason = reason
                self._become(State.LOST)

    def fail(self, error: KafkaProtoError) -> None:
        """The reader has to know: its next poll raises `error`."""
        with self._lock:
            if self.state is not State.CLOSED:
                self.error = error
                self._become(State.FAILED)

    @property
    def is_forgotten(self) -> bool:
        """Whether there is no reader any more that could poll, or close."""
        return self._reader is not None and self._reader() is None

    def overdue_s(self, interval_s: float) -> float:
        """For how long the reader should have polled by now; below 0: it has time yet."""
        return time.monotonic() - self._polled_at - interval_s

    def take_commits(self) -> list[Commit]:
        """What is to be committed, oldest first."""
        with self._lock:
            taken, self._commits = self._commits, []
            return taken

    def leave_out(self, commit: Commit) -> None:
        """What was given up since `commit` was given may be read, and committed, by others."""
        with self._lock:
            gone = {item for item in commit.left if self._given_up.get(item, -1) > commit.number}
            if gone:
                commit.left = {item: at for item, at in commit.left.items() if item not in gone}
                commit.is_late = True

    def answer(self, commits: list[Commit], error: KafkaProtoError | None) -> None:
        """Those commits are done."""
        with self._lock:
            for commit in commits:
                self._answered += not commit.is_done
                commit.error, commit.is_done = error, True
            if self._answered >= self._given:  # nobody asks any more
                self._given_up.clear()
            self._tell()

    def refuse_commits(self, error: KafkaProtoError) -> None:
        """Nobody commits any more: what was not taken is done, and all that will be given."""
        with self._lock:
            self._refusal = error
            self._answer_all(error)

    @property
    def may_be_read(self) -> frozenset[TopicPartition]:
        """What it reads, or may begin to at any moment."""
        with self._lock:
            return self.assignment | self.owned

    def wait_for_work(
        self, timeout_s: float, owned: frozenset[TopicPartition] | None = None
    ) -> None:
        """Return when there is something to join, commit or end, at the latest in `timeout_s`.

        Args:
            timeout_s: how long to wait.
            owned: return, too, when the reader reads something else; None: that is no matter.
        """
        with self._lock:
            if not self._has_work and owned in (None, self.owned):
                self._changed.wait(timeout_s)

    @property
    def _has_work(self) -> bool:
        """Whether the keeper has something to do beside heartbeats."""
        return bool(self._commits) or self.state in (State.JOINING, State.CLOSED)

    def _answer_all(self, error: KafkaProtoError) -> None:
        self.answer(self.take_commits(), error)

    def _tell(self) -> None:
        """Wake up whoever waits; with the lock."""
        self._changed.notify_all()
        if self._news.locked():
            self._news.release()

    def _become(self, state: State) -> None:
        if self.state is not State.CLOSED:
            self.state = state
        self._tell()


def _may_pass(error: KafkaProtoError | None) -> bool:
    # Certificates are renewed, and passwords given, as rights are: the next connection reads them.
    # What cannot be read ends its connection: the next one is another.
    is_undone = isinstance(error, AuthenticationFailed | RemoteProtocolError) or (
        isinstance(error, BrokerError) and error.code in _MAY_PASS
    )
    return error is None or is_undone or is_retriable(error)
