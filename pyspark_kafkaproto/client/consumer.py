"""Consumer: a member of a consumer group that reads Arrow batches.

    config = {"bootstrap.servers": "broker-1:9092", "group.id": "reports"}
    with Consumer(config, {"orders"}) as consumer:
        for batch in consumer:
            ...

It shares the topics' partitions with the group's other members, whatever client they are, and goes
on where the group has committed. The thread that keeps the membership is its own; the consumer is
for use by one thread at a time. Its parts are in `client.group`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from pyspark_kafkaproto.arrow import RECORD_COLUMNS, schema_for
from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.client.group.beginning import starting_positions
from pyspark_kafkaproto.client.group.classic.cooperative import CooperativeKeeper
from pyspark_kafkaproto.client.group.classic.keeper import ClassicKeeper
from pyspark_kafkaproto.client.group.commits import Commits, OnCommit
from pyspark_kafkaproto.client.group.held import HeldOffsets
from pyspark_kafkaproto.client.group.incremental.keeper import IncrementalKeeper
from pyspark_kafkaproto.client.group.keeper import Closing, Keeper
from pyspark_kafkaproto.client.group.membership import (
    NO_GENERATION,
    Membership,
    State,
    View,
)
from pyspark_kafkaproto.client.group.pattern import (
    INCREMENTAL,
    SubscriptionPattern,
    checked_topics,
)
from pyspark_kafkaproto.client.group.reading import Reading
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.group.sessions import FetchSessions
from pyspark_kafkaproto.client.polled import Polled
from pyspark_kafkaproto.client.weakly import weakly
from pyspark_kafkaproto.cluster import CommittedOffset, Router, TopicPartition
from pyspark_kafkaproto.cluster.given import Offset, Offsets, checked_offsets, checked_partitions
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.recent import with_latest
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
    another,
)
from pyspark_kafkaproto.net import ConsumerConfig, Deadline

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

# The longest that a poll waits for rows before it looks at the membership: others may be waiting
# for partitions that are to be given up.
_LOOK_S = 0.5

# Of so many partitions that were given up, beside those that are read, it is known where: one that
# comes back is gone on with there. Others are taken for somebody else's, as any new one is.
_MOST_LEFT: Final = 10_000

_P = ParamSpec("_P")
Partitions = frozenset[TopicPartition]
Listener = Callable[[Partitions], object]


class Consumer(Polled):
    """A member of a group.

    Args:
        config: Kafka's consumer properties (`bootstrap.servers`, `group.id`, …), or them already
            read; docs/consumer.md has a table.
        topics: names, or a SubscriptionPattern. What is not there is read once it is.
        columns: of the batches: topic, partition, offset, timestamp, timestampType, key, value,
            headers.
        on_assign: called in `poll` with the partitions that have come to be read.
        on_revoke: called in `poll` before partitions are given up; `commit` works there.
        on_lost: called in `poll` and `close` with partitions that others read already.
        on_commit: called in `poll`, `commit` and `close` with the offsets of a commit that was not
            waited for, and its error.

    Raises:
        ConfigError: a property or a topic that cannot be used.
    """

    def __init__(
        self,
        config: Mapping[str, object] | ConsumerConfig,
        topics: Collection[str] | SubscriptionPattern,
        *,
        columns: Sequence[str] = RECORD_COLUMNS,
        on_assign: Listener | None = None,
        on_revoke: Listener | None = None,
        on_lost: Listener | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        self.config = config if isinstance(config, ConsumerConfig) else ConsumerConfig.parse(config)
        wanted = checked_topics(topics, self.config)
        check_set("columns", columns)
        for name, given in {
            "on_assign": on_assign,
            "on_revoke": on_revoke,
            "on_lost": on_lost,
            "on_commit": on_commit,
        }.items():
            if not (given is None or callable(given)):
                raise ConfigError(name, given, "expected something to call")
        say_which_codec()
        super().__init__(Membership(self.config.group_instance_id))
        self._schema = schema_for(columns)
        self._on_assign, self._on_revoke = self._let_in(on_assign), self._let_in(on_revoke)
        self._on_lost = self._let_in(on_lost)
        self._router = Router(self.config.client)
        self._reading: Reading | None = None
        self._own: Partitions = frozenset()
        self._reader: View | None = None  # who has read what `poll` gave last
        self._left_at: dict[TopicPartition, int] = {}  # since all were given up last
        self._seen = Seen()
        self._sessions = FetchSessions()
        self._is_warned = False  # of automatic commits beside those of transactions
        self._is_revoking = False  # `on_revoke` is told, and may poll
        self._commits = Commits(
            self.config, self._membership, weakly(self._seen_now), self._let_in(on_commit)
        )
        self._held = HeldOffsets(self._router, self._timeout_s)
        self._keeper = _keeper(self.config, wanted, self._membership)
        self._keeper.start()

    def _seen_now(self) -> Seen:
        """What positions stand on."""
        return self._seen if self._reading is None else self._reading.seen

    def _let_in(self, listener: Callable[_P, object] | None) -> Callable[_P, object] | None:
        return None if listener is None else self._alone.letting_in(listener)

    @property
    def assignment(self) -> Partitions:
        """The partitions that are read at this moment."""
        return self._own

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset after the rows that `poll` has given, per partition: what may be committed.

        One that is not there (any more) is left out for as long as no reset has moved it, with
        auto.offset.reset=none at every time: whoever began there would pass over records.
        """
        return {item: committed.offset for item, committed in self.committable.items()}

    @property
    def committable(self) -> dict[TopicPartition, CommittedOffset]:
        """`positions` with the leader epochs of the records before them, as `commit` commits them.

        For `Producer.send_offsets_to_transaction`: whoever goes on notices by an epoch that the log
        was cut off below its offset.
        """
        return {} if self._reading is None else self._reading.committable

    @property
    def member_id(self) -> str:
        """Who this is to the group's coordinator; "" while it does not know us."""
        return self._membership.member.member_id

    @property
    def group_member(self) -> GroupMember:
        """Who has read what `poll` gave, and in which generation of the group.

        For `Producer.send_offsets_to_transaction`: once others read these partitions, the group
        refuses it, where it would take the offsets of nobody (KIP-447). Where enable.auto.commit is
        left on beside it, a warning says so.

        Raises:
            LocalProtocolError: nothing was read as a member yet.
        """
        if self._reader is None:
            raise LocalProtocolError("the consumer has no partitions of its group yet: poll first")
        if self.config.enable_auto_commit and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "group %r: enable.auto.commit is on beside a producer's transactions, and commits "
                "offsets of rows whose transaction may fail yet: set it to false",
                self.config.group_id,
            )
        now = self._membership.view
        # In the protocol of KIP-848 a member goes through epochs, and reads on.
        is_same = now.tenure == self._reader.tenure and now.member.generation != NO_GENERATION
        return now.member if is_same else self._reader.member

    # Reading

    def poll(self, timeout_s: float = 1.0) -> pa.RecordBatch | None:
        """Rows of one partition, or None where none came in `timeout_s` seconds.

        Follows rebalances, and commits what earlier calls gave when that is due. Has to be called
        at least every max.poll.interval.ms. Takes longer than `timeout_s` where it has to connect,
        to look up leaders or offsets, or to heed a throttle, each within its own time-out; of
        answers it takes what has come. Where an open transaction holds the group's offsets there
        are no rows until that ends, and a warning says so.

        Raises:
            BrokerError: the group does not take us (rights, session.timeout.ms, another member with
                our group.instance.id), or a partition cannot be read.
            CorruptRecords: names topic, partition and base offset.
            DeadlineExceeded, ConnectionFailed: nobody, or one of the leaders, answered for
                default.api.timeout.ms. Partitions of other leaders are read meanwhile.
            ConfigError: `timeout_s` is no number of seconds.
        """
        return self._poll_alone(timeout_s)

    def _note_arrived(self) -> None:
        if self._reading is not None:
            self._reading.note_arrived()

    def _take_back(self) -> None:
        if self._reading is not None:
            self._reading.take_back()

    def _poll(self, deadline: Deadline) -> pa.RecordBatch | None:
        self._commits.report()
        self._membership.check_open()
        if self._reading is None:
            self._keeper.say_nobody_answers()
        while True:
            self._membership.polled()
            view = self._follow()
            self._note_arrived()  # what a listener has polled
            batch = None
            # Who waits in here for long is alive all the same.
            turn = deadline.sooner(min(_LOOK_S, self.config.max_poll_interval_s / 2))
            if self._reading is not None and self._own:
                self._commits.give_when_due(lambda: self.committable)
                batch = self._next_batch(self._reading, turn)
            elif not deadline.has_passed:
                self._membership.wait_for_change(view, self._sooner_if_held(view, turn))
            if batch is not None or deadline.has_passed:
                return batch
            self._commits.report()  # it may be a long wait

    def _next_batch(self, reading: Reading, turn: Deadline) -> pa.RecordBatch | None:
        """See `Reading.next_batch`; nothing where it is being looked up whether a topic is gone."""
        if reading.seen.is_made_again:
            reading.seen.is_made_again = False
            self._keeper.look_soon()
        try:
            return reading.next_batch(turn)
        except BrokerError as error:
            if not self._keeper.looks_first(error):
                raise
            _log.info("no rows for a moment, the topics are looked up again: %s", error)
            return None

    def seek(self, partition: tuple[str, int], offset: Offset) -> None:
        """Read a partition from `offset` on, as if that were where it had come to.

        In `on_assign`, too, for offsets that are kept elsewhere. It may be committed from then on.

        Args:
            partition: TopicPartition, or (topic, number); one that is read by this member.
            offset: the next one to read. One that is not there goes as auto.offset.reset says.

        Raises:
            ConfigError: such an offset, or partition, there cannot be; or it is not ours now.
        """
        ((item, at),) = checked_offsets({partition: offset}).items()
        with self._alone():
            self._membership.check_open()
            self._reading_of({item}).seek(item, at)

    @property
    def paused(self) -> Partitions:
        """The partitions of `assignment` that `poll` gives nothing of."""
        return frozenset() if self._reading is None else self._reading.paused

    def pause(self, partitions: Collection[tuple[str, int]]) -> None:
        """Have `poll` give no rows of these until `resume`; they stay with this member.

        Whoever has to wait for something else goes on polling so, and stays in the group. A
        partition that is given up, and comes back, is read.

        Raises:
            ConfigError: one that there cannot be, or that is not ours now.
        """
        items = checked_partitions(partitions)
        with self._alone():
            self._membership.check_open()
            if items:  # else there may be nothing that reads: all that is ours is none, too
                self._reading_of(items).pause(self.paused.union(items))

    def resume(self, partitions: Collection[tuple[str, int]]) -> None:
        """Read these on from where they were paused; errors as for `pause`."""
        items = checked_partitions(partitions)
        with self._alone():
            self._membership.check_open()
            if items:
                self._reading_of(items).pause(self.paused.difference(items))

    def _reading_of(self, partitions: Collection[TopicPartition]) -> Reading:
        """What reads `partitions`, which have to be ours."""
        others = sorted(set(partitions) - self._own)
        if self._reading is None or others:
            shown = ", ".join(map(str, others or partitions))
            ours = ", ".join(map(str, sorted(self._own))) or "none: poll first"
            allowed = f"not read by this consumer at the moment; it has {ours}"
            raise ConfigError("partitions", shown, allowed)
        return self._reading

    def _follow(self) -> View:
        """Do what the state of the membership wants of the reader."""
        member = self._membership
        member.check_open()
        view = member.view
        if self._is_revoking:
            return view  # of what is being given up there are rows until that is told
        if view.state is State.FAILED and member.error is not None:
            error = another(member.error)
            self._let_go(self._on_lost)
            raise error
        if view.state is State.REBALANCING:
            self._give_up_all()
        elif view.state is State.LOST:
            self._let_go(self._on_lost)
        elif view.state is State.STABLE and (self._reading is None or self._is_behind(view)):
            self._reconcile(view)
        return view

    def _reconcile(self, view: View) -> None:
        """Give up what is not assigned any more, then begin with what is now.

        In the classic protocol nothing is left of the generation before, so it is all of it.
        """
        if revoked := self._own - view.assignment:
            try:
                self._hand_over(revoked)
            finally:
                if not self._is_closed:  # by a listener
                    self._read(view, self._own - revoked, {})
                    self._membership.give_up(revoked)
            if self._is_closed:
                return
        added = view.assignment - self._own
        if self._reading is not None and not added:
            return
        starts = self._starting_positions(added, view.member)
        if starts is None or not self._membership.claim(view):
            return
        try:
            self._read(view, view.assignment, starts)
        finally:
            self._membership.give_up(added - self._own)  # where it was interrupted
        if self._on_assign is not None:
            self._tell_of(added, view, self._on_assign)

    def _tell_of(self, added: Partitions, view: View, on_assign: Listener) -> None:
        """Where the listener fails, the next poll begins with them again, and tells it again."""
        try:
            on_assign(added)
        except BaseException:
            if not self._is_closed:
                self._read(view, self._own - added, {})
                self._membership.give_up(added)
            raise

    def _read(
        self, view: View, own: Partitions, starts: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Read `own` from now on: some begin at `starts`, the others go on where they are."""
        kept: dict[TopicPartition, CommittedOffset] = {}
        paused = self.paused & own
        left: set[TopicPartition] = set()  # one by one: what is known of them lasts until they come
        if self._reading is not None:
            self._left_at = with_latest(self._reading.positions, self._left_at, _MOST_LEFT)
            self._seen = self._reading.seen
            left = self._left_at.keys() - own
            kept = {item: at for item, at in self._reading.standing.items() if item in own}
            self._reading.close()
        came_back = {item for item, at in starts.items() if self._has_been_at(item, at.offset)}
        begins = {**kept, **starts}
        seen = self._seen.in_next_generation(begins, kept.keys() | came_back | left)
        terms = self.config, self._router, self._schema, seen, self._sessions
        reading = Reading(own, begins, *terms)
        reading.pause(paused)  # first: whoever is interrupted here has nothing resumed
        self._reading = reading
        self._own, self._reader = own, view
        self._commits.keep(kept)

    def _starting_positions(
        self, assigned: frozenset[TopicPartition], member: GroupMember
    ) -> dict[TopicPartition, CommittedOffset] | None:
        """See `starting_positions`; None where they cannot be had yet.

        A transaction that is about to commit them ends with its producer, or by its time-out. A
        coordinator that does not know us in our epoch may be one of the past, or a moment ahead.
        """
        if not assigned:
            return {}
        if self._held.are_resting:
            return None
        who = member if self.config.group_protocol == INCREMENTAL else None
        try:
            starts = starting_positions(
                self._router, self.config, assigned, has_others=bool(self._own), member=who
            )
        except BrokerError as error:
            if self._keeper.looks_first(error) or self._held.bears(error):
                return None
            raise
        self._held.are_had()
        return starts

    def _sooner_if_held(self, view: View, turn: Deadline) -> Deadline:
        """When to ask again about held offsets, where those are of what is to be read still."""
        is_wanted = view.state is State.STABLE and self._is_behind(view)
        return self._held.sooner(turn) if is_wanted else turn

    def _is_behind(self, view: View) -> bool:
        """Whether something else is to be read than what is read."""
        # Most of the time it is the same object: each poll asks, and there may be thousands.
        return view.assignment is not self._own and view.assignment != self._own

    def _has_been_at(self, partition: TopicPartition, offset: int) -> bool:
        """Whether this member has left `partition` at `offset`, or committed that last."""
        is_committed = self._commits.is_at(partition, offset)
        return is_committed or self._left_at.get(partition) == offset

    def _give_up_all(self) -> None:
        """As the classic protocol wants it: nobody begins before all have let go."""
        try:
            self._hand_over(self._own)
        finally:
            self._let_go(None)

    def _hand_over(self, partitions: Partitions) -> None:
        """Say how far we came, while we may; then others read on from there."""
        self._say_revoked(partitions)
        if self._is_closed:  # by the listener: all has been said
            return
        deadline = Deadline.after(self._timeout_s)  # both together
        self._commit_last(deadline)
        self._commits.see_through(deadline)

    def _say_revoked(self, partitions: Partitions) -> None:
        if self._on_revoke is not None and partitions:
            self._is_revoking = True
            try:
                self._on_revoke(partitions)
            finally:
                self._is_revoking = False

    def _commit_last(self, deadline: Deadline) -> None:
        if self.config.enable_auto_commit:
            self._commits.give_last(lambda: self.committable, deadline)

    def _let_go(self, listener: Listener | None, *, is_last: bool = False) -> None:
        """Read no more, and tell the membership; `is_last`: of who closes, it joins no more."""
        own, self._own = self._own, frozenset()
        if self._reading is not None:
            self._left_at, self._seen = self._reading.positions, self._reading.seen
            self._reading.close()
            self._reading = None
        if not is_last:
            self._membership.released()
        if listener is not None and own:
            listener(own)

    # Committing

    def commit(self, offsets: Offsets | None = None, *, wait: bool = True) -> None:
        """Commit for the group: each offset is the next one to read.

        Commits arrive in the order of the calls, those not waited for, too.

        Args:
            offsets: by TopicPartition, or (topic, number). None: all `committable` positions, also
                where they have not moved: transactions may have moved the group's offsets.
            wait: False: return at once; a later `poll` tells `on_commit`. Of several under way the
                last offset of each partition is what is sent.

        Raises:
            BrokerError: refused; with ILLEGAL_GENERATION others read these partitions by now. Of
                several partitions `usable` has those that were committed all the same.
            ConfigError: such an offset, or partition, there cannot be.
            DeadlineExceeded: not answered within default.api.timeout.ms.
        """
        with self._alone():
            self._commits.report()
            # Here: the thread that sends it is the wrong place to find out that it cannot be.
            given = self.committable if offsets is None else checked_offsets(offsets)
            self._commits.give(given, wait=wait)

    @property
    def _timeout_s(self) -> float:
        return self._commits.timeout_s

    # The end

    def _leave_block(self, *, is_done: bool) -> None:
        self.close(commit=is_done)

    def close(self, *, commit: bool = True) -> None:
        """Leave the group; with enable.auto.commit commit the positions before. Again: nothing.

        `on_revoke` is told before, where the partitions are still ours, else `on_lost`. A static
        member (group.instance.id) does not give them up: it finds them again when it is back within
        the session's time. Nor does a child process: the member is its parent's.

        Takes 30 s at most, or default.api.timeout.ms where that is less, listeners aside: where
        nobody answers the group notices when the session ends, and commits that were not answered
        have failed. Ctrl-C has it leave without its last commit, unless that is done.

        Args:
            commit: False: commit nothing, nor tell `on_revoke`: the last rows are read again.

        Raises:
            LocalProtocolError: another thread uses the consumer.
        """
        self._close_once(partial(self._close, commit=commit))

    def _close(self, *, commit: bool) -> None:
        is_to_commit = commit and self._membership.is_member
        closing = Closing.within(self._timeout_s)
        try:
            try:
                if is_to_commit:
                    self._say_revoked(self._own)
                elif not self._membership.is_member:
                    self._let_go(self._on_lost, is_last=True)
            finally:  # the listener's time is its own
                closing = Closing.within(self._timeout_s)
            if is_to_commit:
                self._commit_last(closing.commits)
            self._commits.see_last_through(closing.commits)
        finally:
            self._end(closing.end)

    def _end(self, deadline: Deadline) -> None:
        self._membership.close()  # its keeper begins to leave
        self._sessions.end(self._router.connections.kept)
        if self._reading is not None:
            self._reading.close()
        self._reading, self._own = None, frozenset()
        self._router.close()
        self._keeper.end(deadline)
        self._has_ended = True


def _keeper(
    config: ConsumerConfig,
    topics: frozenset[str] | SubscriptionPattern,
    membership: Membership,
) -> Keeper[Any]:
    if config.group_protocol == INCREMENTAL:
        return IncrementalKeeper(config, topics, membership)
    kind = CooperativeKeeper if config.is_cooperative else ClassicKeeper
    return kind(config, topics, membership)
