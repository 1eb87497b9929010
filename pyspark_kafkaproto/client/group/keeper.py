"""The thread that keeps a membership: it joins, beats, commits, and ends what is over.

It is the only one that speaks with the coordinator while the member lives, on a connection of its
own, so that commits arrive in the order in which they were given, and heartbeats go on while the
reader works, and while a commit is tried again. Three exceptions end a membership from here: a
reader that does not poll for max.poll.interval.ms leaves, one that is gone without `close` (this
thread holds the membership, and not the reader) does so too, and an instance id that another member
has taken is given up.
How a member joins, and what it does at which time, is in `classic` and `incremental`.
Protocol: KIP-62, KIP-345.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from pyspark_kafkaproto.client.group.conversation import Conversation
from pyspark_kafkaproto.client.group.membership import NO_GENERATION, Commit, Membership, State
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember, GroupPartition
from pyspark_kafkaproto.error_codes import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    KafkaProtoError,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from pyspark_kafkaproto.net.retry import given_up, is_retriable

_log = logging.getLogger(__name__)

# How long `end` waits for a thread that has nothing to wait for itself.
_SOON_S = 0.5
_END_S = 5.0
_LONGEST_CLOSE_S: Final = 30.0  # Java's
_TO_LEAVE: Final = 1 / 6  # of the time to close: commits have the rest
_WORTH_A_WORD_S = 2.0
GONE: Final = (UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION)
"""What a reader is told of a topic, or a partition, that is not there any more."""

_BEATS_TO_HEAR_OF_IT: Final = 2  # the first may be under way as a topic is deleted
_GONE_ALREADY: Final = (GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID)
# Of a commit: not about what is committed, so that no other one goes any better.
OF_THE_MEMBER: Final = (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
)


class Due(NamedTuple):
    """What is to be done, and from when on (time.monotonic)."""

    at: float
    act: Callable[[], None]


class Closing(NamedTuple):
    """Until when a member that closes says what is done, and until when it is gone."""

    commits: Deadline
    end: Deadline

    @classmethod
    def within(cls, timeout_s: float) -> Closing:
        """From now on; `timeout_s` is the longest that anything of it may take."""
        whole_s = min(timeout_s, _LONGEST_CLOSE_S)
        return cls(Deadline.after(whole_s * (1 - _TO_LEAVE)), Deadline.after(whole_s))


_C = TypeVar("_C", bound=Conversation)


class Keeper(ABC, Generic[_C]):
    """Keeps `membership` true to what the coordinator says, until that is closed."""

    def __init__(self, config: ConsumerConfig, coordinator: _C, membership: Membership) -> None:
        self._config = config
        self._membership = membership
        self._coordinator = coordinator
        self._failed_joins = 0
        self._left_overdue = False
        self._owned: frozenset[TopicPartition] | None = None  # seen last; None: not looked at
        self._commits: list[Commit] = []  # taken and not done yet, oldest first
        self._commit_at = 0.0  # not before: the last try failed
        self._failed_commits = 0
        self._beats = 0  # that were answered
        self._in_doubt_until: int | None = None  # so many of them, and others would have said it
        self._say_at, self._is_said = Deadline.after(_WORTH_A_WORD_S), False
        # A process that ends must not wait for a JoinGroup that the broker answers in minutes.
        self._thread = threading.Thread(
            target=self._run, name=f"kafkaproto-group-{config.group_id}", daemon=True
        )

    def start(self) -> None:
        """Begin to join."""
        self._thread.start()

    def say_nobody_answers(self) -> None:
        """Once: polls give nothing until somebody does, and an error only when that has lasted."""
        if self._is_said or not self._say_at.has_passed:
            return
        self._is_said = True
        for place, why in self._coordinator.router.waits_for().items():
            reason = "no answer yet" if why is None else why
            _log.warning("group %r: %s: %s", self._config.group_id, place, reason)

    def end(self, deadline: Deadline) -> None:
        """Leave, once the membership is closed: soon over, unless a JoinGroup is under way.

        On a connection of its own then: that is answered once we have left, where a SyncGroup is
        not, and is given up. A thread that waits for a broker that says nothing is not waited for:
        it ends with its request.
        """
        self._coordinator.router.is_over = True
        self._thread.join(min(_SOON_S, deadline.remaining_s))
        member = self._membership.member
        if not self._coordinator.leaves(member):
            self._coordinator.has_left = True  # as far as it ever will
            return
        self._leave_aside(member, deadline)
        self._coordinator.has_left = True
        self._thread.join(min(_END_S, deadline.remaining_s))

    def _leave_aside(self, member: GroupMember, deadline: Deadline) -> None:
        """Leave on connections of its own: those of a member that has ended try nothing again."""
        aside = self._coordinator.anew()
        try:
            leave(aside, member, "the consumer was closed", deadline)
        finally:
            aside.close()

    def looks_first(self, error: BrokerError) -> bool:  # noqa: ARG002 - by names there is nothing
        """Whether it is looked up first whether a topic is gone, which has the reader read others.

        Called by the reader with what it has met, at each time.
        """
        return False

    def _may_hear_of_it(self) -> bool:
        """Whether others, who share out, may say yet that what is read is gone."""
        until = self._in_doubt_until  # which the keeper's thread forgets when somebody has said it
        if until is None:
            until = self._beats + _BEATS_TO_HEAR_OF_IT
        may_hear = self._beats < until
        self._in_doubt_until = until if may_hear else None
        return may_hear

    def look_soon(self) -> None:
        """A topic that is read was made again, perhaps with other partitions."""

    @abstractmethod
    def _enter(self) -> None:
        """Become a member; `Membership.joined` is told."""

    @abstractmethod
    def _clock(self) -> list[Due]:
        """What a member has to do, and when; of several that are due the first one is done."""

    def _judge(self, error: BrokerError, *, in_commit: bool = False) -> None:
        """What an error of the coordinator's makes of the membership."""
        if is_retriable(error) and self._membership.is_member:
            self._say_failed(error)
        elif not in_commit or error.code == FENCED_INSTANCE_ID:
            self._membership.fail(error)

    def _say_failed(self, error: KafkaProtoError) -> None:
        """Say of what was tried for long enough that it failed, and is tried again."""
        _log.warning("%s; tried again with the next heartbeat", error)

    def _run(self) -> None:
        member = self._membership
        end: KafkaProtoError = self._too_late()
        try:
            while member.state is not State.CLOSED:
                if member.is_forgotten:
                    self._leave_forgotten()
                else:
                    self._step()
        except BaseException as error:
            # Whatever it is: a reader whose membership is kept by nobody has to know.
            end = LocalProtocolError(f"keeping the membership failed: {error!r}")
            end.__cause__ = error
            member.fail(end)
            raise
        finally:
            member.answer(self._commits, end)
            member.refuse_commits(end)
            self._coordinator.close()

    def _step(self) -> None:
        """What is due by the clock, then one try to commit, or what the state wants.

        Neither keeps the other waiting: not commits without a pause the heartbeats, nor they these.
        """
        member = self._membership
        if member.is_member:
            self._keep_time()
        if self._commit_when_due():
            return
        if member.state is State.JOINING:
            self._guarded(self._join)
        else:
            due_at = self._due_at()
            member.wait_for_work(max(0.0, due_at - time.monotonic()), self._owned)

    def _keep_time(self) -> None:
        now = time.monotonic()
        if self._membership.overdue_s(self._config.max_poll_interval_s) >= 0:
            self._leave_overdue()
            return
        due = next((item for item in self._clock() if now >= item.at), None)
        if due is not None:
            self._guarded(due.act)

    def _due_at(self) -> float:
        """When there is something to do, if nothing comes in between."""
        now = time.monotonic()
        due = [self._commit_at] if self._commits else []
        if not self._membership.is_member:
            return min([*due, now + self._config.heartbeat_interval_s])
        overdue_at = now - self._membership.overdue_s(self._config.max_poll_interval_s)
        return min([*due, overdue_at, *(item.at for item in self._clock())])

    def _join(self) -> None:
        if self._failed_joins > 1:
            time.sleep(self._config.client.backoff.wait_s(self._failed_joins))
        self._failed_joins += 1
        self._enter()
        self._failed_joins, self._left_overdue = 0, False
        if self._membership.is_member:
            self._say_what_is_read()

    def _say_what_is_read(self) -> None:
        member = self._membership.member
        _log.info(
            "member %s of group %r, generation %d: reads %s",
            member.member_id,
            self._config.group_id,
            member.generation,
            ", ".join(map(str, sorted(self._membership.assignment))) or "nothing",
        )

    def _leave_overdue(self) -> None:
        """A reader that does not poll holds up its partitions: they go to others.

        Where a static member does not leave they stay with it until its session ends, as no
        heartbeat comes any more.
        """
        member = self._membership.member
        text = "no poll for max.poll.interval.ms"
        self._left_overdue = True
        _log.warning("group %r: %s, leaving the group", self._config.group_id, text)
        self._membership.lost(text, member_id=member.member_id if member.instance_id else "")
        if self._coordinator.leaves(member):
            leave(self._coordinator, member, text, self._soon)

    @property
    def _soon(self) -> Deadline:
        return Deadline.after(self._config.client.request_timeout_s)

    def _leave_forgotten(self) -> None:
        """Nobody can poll any more: as after a `close` that commits nothing of its own.

        What was given before is tried once.
        """
        _log.warning(
            "group %r: the consumer is gone and was not closed: leaving the group; rows that it "
            "has not committed are read again",
            self._config.group_id,
        )
        if self._membership.is_member:
            self._commit_when_due()
        member = self._membership.member
        self._membership.close()
        if self._coordinator.leaves(member):
            leave(self._coordinator, member, "the consumer was dropped", self._soon)

    # Commits

    def _commit_when_due(self) -> bool:
        """One try to commit what was given, if anything was; whether there was one."""
        self._commits += self._membership.take_commits()
        is_due = bool(self._commits) and time.monotonic() >= self._commit_at
        if is_due:
            self._commit()
        return is_due

    def _commit(self) -> None:
        """Those of one generation go in one request: later offsets take the place of earlier."""
        count = 1 if self._commits[0].is_apart else _count_together(self._commits)
        commits, self._commits = self._commits[:count], self._commits[count:]
        current = self._membership.member
        # Without a generation a coordinator would take a commit for one from outside of the group.
        is_out = current.generation == NO_GENERATION
        tenure = self._membership.tenure
        late = [item for item in commits if is_out or item.tenure != tenure]
        for commit in late:
            self._answer(commit, self._too_late())
        ours = [item for item in commits if item not in late]
        if not ours:
            return
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for commit in ours:
            self._membership.leave_out(commit)
            offsets |= commit.left
        topic_ids = {name: known for commit in ours for name, known in commit.topic_ids.items()}
        is_doubtful = any(commit.is_doubtful or commit.failures for commit in ours)
        error = None
        if offsets:
            error = self._try_to_commit(current, offsets, topic_ids, is_doubtful=is_doubtful)
        if error is not None and self._passes(error):
            self._put_back(ours, error)
            return
        self._failed_commits = 0
        if len(ours) > 1 and isinstance(error, BrokerError) and error.code not in OF_THE_MEMBER:
            self._set_apart(ours, error)
            return
        for commit in ours:
            why = error
            if why is None and commit.is_late:
                why = self._too_late()
                why.usable = self._as_usable(commit.left)
            self._answer(commit, why)

    def _answer(self, commit: Commit, error: KafkaProtoError | None) -> None:
        """It is done. What goes apart has an error of its own, which may be told what was done."""
        if error is not None and commit.done:
            error.usable = {**(error.usable or {}), **self._as_usable(commit.done)}
        self._membership.answer([commit], error)

    def _as_usable(self, done: Collection[TopicPartition]) -> dict[GroupPartition, None]:
        """Partitions that were committed, as errors of OffsetCommit have them."""
        return {GroupPartition(self._config.group_id, item): None for item in done}

    def _set_apart(self, commits: list[Commit], error: BrokerError) -> None:
        """Send them again one by one, without what is committed: each has its own error then."""
        committed = {item.partition for item in error.usable or ()}
        for commit in commits:
            left = commit.left.items()
            commit.done = committed & commit.left.keys()
            commit.left = {item: offset for item, offset in left if item not in committed}
            commit.is_apart = True
        self._commits = commits + self._commits

    def _passes(self, error: KafkaProtoError) -> bool:
        """Whether a commit that met `error` is tried again."""
        return is_retriable(error)

    def _try_to_commit(
        self,
        current: GroupMember,
        offsets: Mapping[TopicPartition, CommittedOffset],
        topic_ids: Mapping[str, bytes],
        *,
        is_doubtful: bool,
    ) -> KafkaProtoError | None:
        try:
            self._coordinator.commit(current, offsets, topic_ids, is_doubtful=is_doubtful)
        except KafkaProtoError as error:
            if isinstance(error, BrokerError) and not is_retriable(error):
                self._judge(error, in_commit=True)
            return error
        except Exception as error:  # noqa: BLE001 - whoever commits is told, the member lives on
            why = LocalProtocolError(f"the commit could not be sent: {error!r}")
            why.__cause__ = error
            return why
        return None

    def _put_back(self, commits: list[Commit], error: KafkaProtoError) -> None:
        """Try them again, before what is given later; those whose time is over have failed."""
        again = []
        self._failed_commits += 1
        wait_s = self._config.client.backoff.wait_s(self._failed_commits)
        self._commit_at = time.monotonic() + wait_s
        for commit in commits:
            commit.is_in_doubt |= not isinstance(error, BrokerError)
            why = _given_up(commit, error, wait_s)
            if why is None:
                again.append(commit)
            else:
                self._answer(commit, why)
        if not again:  # those to come have not failed yet
            self._failed_commits, self._commit_at = 0, 0.0
        self._commits = again + self._commits

    def _too_late(self) -> BrokerError:
        """What is said of a commit by who has read the rows, and is no member any more."""
        text = "the group has shared its partitions out anew since: others read them now"
        if self._left_overdue:
            text = (
                "this member has left: nobody polled for max.poll.interval.ms, "
                f"{self._config.max_poll_interval_s * 1000:.0f}. Others may read its partitions; "
                "the next poll joins again"
            )
        subject = f"group {self._config.group_id!r}"
        return BrokerError(ILLEGAL_GENERATION, "OffsetCommit", subject, text)

    # What the coordinator says about us

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BrokerError as error:
            self._judge(error)
        except KafkaProtoError as error:
            if is_retriable(error) and self._membership.is_member:
                self._say_failed(error)
            else:
                self._membership.fail(error)


def leave(conversation: Conversation, member: GroupMember, reason: str, deadline: Deadline) -> None:
    """End a membership that is no matter of the reader's any more, however that goes."""
    try:
        conversation.leave(member, reason, deadline)
    except KafkaProtoError as error:
        if isinstance(error, BrokerError) and error.code in _GONE_ALREADY:
            _log.debug("the group had given us up before we left: %s", error)
        else:
            _log.warning("the group notices only when the session ends: %s", error)


def _count_together(commits: Sequence[Commit]) -> int:
    """How many of them name no topic that one before took for another one of that name."""
    ids: dict[str, bytes | None] = {}
    for number, commit in enumerate(commits):
        for topic in {item.topic for item in commit.offsets}:
            known = commit.topic_ids.get(topic)
            if ids.setdefault(topic, known) != known:
                return number
    return len(commits)


def _given_up(commit: Commit, error: KafkaProtoError, wait_s: float) -> KafkaProtoError | None:
    """Why `commit` is not tried again in `wait_s`; None: it is. As `net.retrying` has it."""
    now = time.monotonic()
    since = commit.failures.setdefault(str(error), now)
    if now - since >= error.patience_s:
        return error
    if wait_s < commit.deadline.remaining_s:
        return None
    return given_up("commit offsets", commit.deadline, list(commit.failures), error)
