"""The thread that keeps a membership: it joins, beats, commits, and sees when to share out anew.

It is the only one that speaks with the coordinator while the member lives, on a connection of its
own, so that commits arrive in the order in which they were given, and heartbeats go on while the
reader works, and while a commit is tried again. Two exceptions end a membership from here: a reader
that does not poll for max.poll.interval.ms leaves, and an instance id that another member has taken
is given up.
Protocol: KIP-62, KIP-345.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from pyspark_kafkaproto.client.group.coordinator import Coordinator, MemberIdRequired
from pyspark_kafkaproto.client.group.membership import NO_GENERATION, Commit, Membership, State
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups import GroupMember
from pyspark_kafkaproto.error_codes import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    KafkaProtoError,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import ConsumerConfig
from pyspark_kafkaproto.net.retry import given_up, is_retriable

_log = logging.getLogger(__name__)

_FIRST_LOOK_S: Final = 1.0
_JOINS_AGAIN: Final = (ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS)
# Of a commit: not about what is committed, so that no other one goes any better.
_OF_THE_MEMBER: Final = (*_JOINS_AGAIN, FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID)


class Keeper:
    """Keeps `membership` true to what the coordinator says, until that is closed."""

    def __init__(
        self, config: ConsumerConfig, topics: Collection[str], membership: Membership
    ) -> None:
        self._config = config
        self._membership = membership
        self._coordinator = Coordinator(config, topics)
        self._shared: Mapping[str, int] | None = None
        self._beat_at = self._look_at = time.monotonic()
        self._looks_in_vain = 0
        self._failed_joins = 0
        self._commits: list[Commit] = []  # taken and not done yet, oldest first
        self._commit_at = 0.0  # not before: the last try failed
        self._failed_commits = 0
        # A process that ends must not wait for a JoinGroup that the broker answers in minutes.
        self._thread = threading.Thread(
            target=self._run, name=f"kafkaproto-group-{config.group_id}", daemon=True
        )

    def start(self) -> None:
        """Begin to join."""
        self._thread.start()

    def wait_for_end(self, timeout_s: float) -> None:
        """Wait for what is under way; a JoinGroup that is not answered is left alone."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        member = self._membership
        end: KafkaProtoError = _too_late(self._config.group_id)
        try:
            while member.state is not State.CLOSED:
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
        self._commits += member.take_commits()
        if self._commits and time.monotonic() >= self._commit_at:
            self._commit()
        elif member.state is State.JOINING:
            self._guarded(self._join)
        else:
            member.wait_for_work(max(0.0, self._due_at() - time.monotonic()))

    def _keep_time(self) -> None:
        now = time.monotonic()
        if self._membership.overdue_s(self._config.max_poll_interval_s) >= 0:
            self._leave_overdue()
        elif now >= self._beat_at:
            self._guarded(self._beat)
        elif self._shared is not None and now >= self._look_at:
            self._guarded(self._look)

    def _due_at(self) -> float:
        """When there is something to do, if nothing comes in between."""
        now = time.monotonic()
        due = [self._commit_at] if self._commits else []
        if not self._membership.is_member:
            return min([*due, now + self._config.heartbeat_interval_s])
        due += [self._beat_at, now - self._membership.overdue_s(self._config.max_poll_interval_s)]
        return min(due if self._shared is None else [*due, self._look_at])

    # Joining

    def _join(self) -> None:
        member = self._membership
        if self._failed_joins > 1:
            time.sleep(self._config.client.backoff.wait_s(self._failed_joins))
        self._failed_joins += 1
        joined = self._coordinator.join(member.member.member_id, member.reason)
        found = self._coordinator.sync(joined)
        self._failed_joins = 0
        self._shared = found.shared
        now = time.monotonic()
        self._beat_at = now + self._config.heartbeat_interval_s
        self._looks_in_vain = 0
        self._plan_look()
        member.joined(found.member, found.assignment)
        _log.info(
            "member %s of group %r, generation %d: reads %s",
            found.member.member_id,
            self._config.group_id,
            found.member.generation,
            ", ".join(map(str, sorted(found.assignment))) or "nothing",
        )

    # Beating

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + self._config.heartbeat_interval_s
        self._coordinator.heartbeat(self._membership.member)

    def _look(self) -> None:
        """The leader shares out anew when a topic has got partitions, or has come at all."""
        self._plan_look()
        shared = self._shared or {}
        wanted = shared.keys() | self._coordinator.wanted
        if self._coordinator.count_partitions(wanted) != shared:
            self._membership.rebalance("topics have changed")

    def _plan_look(self) -> None:
        """When the leader looks at topics again: soon, then ever later, where one is missing."""
        wait_s = self._config.metadata_max_age_s
        if self._shared is None or self._coordinator.wanted <= self._shared.keys():
            self._looks_in_vain = 0
        else:
            wait_s = min(_FIRST_LOOK_S * 2**self._looks_in_vain, wait_s)
            self._looks_in_vain += 1
        self._look_at = time.monotonic() + wait_s

    def _leave_overdue(self) -> None:
        """A reader that does not poll holds up its partitions: they go to others.

        A static member's stay with it until its session ends, as no heartbeat comes any more.
        """
        member = self._membership.member
        text = "no poll for max.poll.interval.ms"
        _log.warning("group %r: %s, leaving the group", self._config.group_id, text)
        self._membership.lost(text, member_id=member.member_id if member.instance_id else "")
        if member.instance_id is None:
            self._guarded(lambda: self._coordinator.leave(member, text))

    # Commits

    def _commit(self) -> None:
        """Those of one generation go in one request: later offsets take the place of earlier."""
        count = 1 if self._commits[0].is_apart else len(self._commits)
        commits, self._commits = self._commits[:count], self._commits[count:]
        current = self._membership.member
        # Without a generation a coordinator would take a commit for one from outside of the group.
        is_out = current.generation == NO_GENERATION
        late = [item for item in commits if is_out or item.member != current]
        self._membership.answer(late, _too_late(self._config.group_id))
        ours = [item for item in commits if item not in late]
        if not ours:
            return
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for commit in ours:
            offsets |= commit.left
        error = self._try_to_commit(current, offsets) if offsets else None
        if error is not None and is_retriable(error):
            self._put_back(ours, error)
            return
        self._failed_commits = 0
        if len(ours) > 1 and isinstance(error, BrokerError) and error.code not in _OF_THE_MEMBER:
            self._set_apart(ours, error)
        else:
            self._membership.answer(ours, error)

    def _set_apart(self, commits: list[Commit], error: BrokerError) -> None:
        """Send them again one by one, without what is committed: each has its own error then."""
        committed = {item.partition for item in error.usable or ()}
        for commit in commits:
            left = commit.left.items()
            commit.left = {item: offset for item, offset in left if item not in committed}
            commit.is_apart = True
        self._commits = commits + self._commits

    def _try_to_commit(
        self, current: GroupMember, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> KafkaProtoError | None:
        try:
            self._coordinator.commit(current, offsets)
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
            why = _given_up(commit, error, wait_s)
            if why is None:
                again.append(commit)
            else:
                self._membership.answer([commit], why)
        if not again:  # those to come have not failed yet
            self._failed_commits, self._commit_at = 0, 0.0
        self._commits = again + self._commits

    # What the coordinator says about us

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BrokerError as error:
            self._judge(error)
        except KafkaProtoError as error:
            if is_retriable(error) and self._membership.is_member:
                _log.warning("%s; tried again with the next heartbeat", error)
            else:
                self._membership.fail(error)

    def _judge(self, error: BrokerError, *, in_commit: bool = False) -> None:
        member = self._membership
        known = member.member.member_id
        if isinstance(error, MemberIdRequired):
            member.named(error.member_id)
            self._failed_joins = 0
        elif member.state is State.JOINING and error.code in (*_JOINS_AGAIN, UNKNOWN_MEMBER_ID):
            member.named("" if error.code == UNKNOWN_MEMBER_ID else known)
        elif error.code == REBALANCE_IN_PROGRESS:
            member.rebalance("the group is rebalancing")
        elif error.code == ILLEGAL_GENERATION:
            member.lost("our generation was over", member_id=known)
        elif error.code == UNKNOWN_MEMBER_ID:
            member.lost("the coordinator had given us up")
        elif is_retriable(error) and member.is_member:
            _log.warning("%s; tried again with the next heartbeat", error)
        elif not in_commit or error.code == FENCED_INSTANCE_ID:
            member.fail(error)


def _too_late(group: str) -> BrokerError:
    text = "the group has shared its partitions out anew since: others read them now"
    return BrokerError(ILLEGAL_GENERATION, "OffsetCommit", f"group {group!r}", text)


def _given_up(commit: Commit, error: KafkaProtoError, wait_s: float) -> KafkaProtoError | None:
    """Why `commit` is not tried again in `wait_s`; None: it is. As `net.retrying` has it."""
    now = time.monotonic()
    since = commit.failures.setdefault(str(error), now)
    if now - since >= error.patience_s:
        return error
    if wait_s < commit.deadline.remaining_s:
        return None
    return given_up("commit offsets", commit.deadline, list(commit.failures), error)
