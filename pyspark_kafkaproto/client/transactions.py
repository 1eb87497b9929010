"""The transactions of one producer: begun, filled with partitions and offsets, ended.

What is written in a transaction is seen by read_committed readers at its end, all or none. Which
kind of transactions there is the cluster says (`transaction.version`): in version 1 every partition
and group is announced to the coordinator before it is written to; in version 2 brokers do that
themselves, and each end gives the producer a new epoch.

Knows nothing of rows and batches. Protocol: KIP-98, KIP-447 (offsets), KIP-890 (version 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Any

from pyspark_kafkaproto.client.writing.sequences import Identity
from pyspark_kafkaproto.cluster import CommittedOffset, Router, TopicPartition
from pyspark_kafkaproto.cluster.asking import check_complete
from pyspark_kafkaproto.cluster.coordinators import GROUP_KEY, TRANSACTION_KEY
from pyspark_kafkaproto.cluster.groups.committed import NO_MEMBER_ANY_MORE, GroupMember
from pyspark_kafkaproto.cluster.topology import by_topic, numbers_by_topic
from pyspark_kafkaproto.cluster.transactions import (
    FENCED,
    FENCED_CODES,
    ONGOING,
    Writer,
    abort_transactions,
    begin_new_writer,
    begin_writer,
    checked,
    end_transactions,
    find_transactions,
    has_version_2,
    refusal,
)
from pyspark_kafkaproto.error_codes import (
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from pyspark_kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from pyspark_kafkaproto.messages.add_partitions_to_txn import Topic as AddedTopic
from pyspark_kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from pyspark_kafkaproto.net import Connection, ProducerConfig
from pyspark_kafkaproto.net.retry import is_retriable

# From version 4 on AddPartitionsToTxn is what brokers ask each other.
_MOST_ADD_PARTITIONS = 3
# Higher ones announce by themselves, which only transactions of version 2 know.
_MOST_PRODUCE_VERSION_1 = 11
_MOST_OFFSETS_VERSION_1 = 4
_MOST_OFFSETS_BY_NAME = 5


_NOBODY = GroupMember("", -1)


class _State(Enum):
    READY = "no transaction is open: call begin_transaction first"
    OPEN = "a transaction is open already: commit or abort it first"
    COMMITTING = "whether the transaction was committed is not known: call commit_transaction again"
    ABORTING = "whether the transaction was aborted is not known: call abort_transaction again"
    DENIED = "the transaction could not be ended, as its error said: begin the next one"
    FENCED = f"{FENCED}: make a new one"


class Transactions:
    """The transactions of one transactional id, one after the other.

    Args:
        router: whom to ask.
        transactional_id: of the producer; whoever had it before is fenced by the first `begin`.
        timeout_ms: how long one may stay open; None for as long as the broker allows.
        spare_id: where nobody is to be fenced: from an id with which nobody has answered the next.
    """

    def __init__(
        self,
        router: Router,
        transactional_id: str,
        timeout_ms: int | None,
        spare_id: Callable[[str], str] | None = None,
    ) -> None:
        self._router = router
        self._spare_id = spare_id
        self._timeout_ms = timeout_ms
        self._writer: Writer | None = None
        self._state = _State.READY
        self._partitions: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._ends: Counter[Writer] = Counter()  # how often the end was asked for
        # Groups and partitions of offsets that may come late, from a request that nobody answered.
        self._late_offsets: set[tuple[str, TopicPartition]] = set()
        self._unanswered = 0  # requests of this transaction that may come late, but for its ends
        self._is_epoch_spent = False
        self.transactional_id = transactional_id
        self.is_version_2 = False

    @property
    def is_open(self) -> bool:
        """Whether rows can be written now."""
        return self._state is _State.OPEN

    @property
    def is_ready(self) -> bool:
        """Whether the next one can be begun."""
        return self._state in {_State.READY, _State.DENIED}

    @property
    def is_to_end(self) -> bool:
        """Whether one is open, or its end is not known."""
        return self._state in {_State.OPEN, _State.COMMITTING, _State.ABORTING}

    @property
    def is_committing(self) -> bool:
        """Whether a commit was asked for, and is not known to be done."""
        return self._state is _State.COMMITTING

    @property
    def is_open_in_version_1(self) -> bool:
        """Whether rows can be written now, which nobody asks the coordinator about."""
        return self.is_open and not self.is_version_2

    @property
    def is_fenced(self) -> bool:
        """Whether somebody else has taken over, and ended what was open."""
        return self._state is _State.FENCED

    @property
    def most_produce_version(self) -> int | None:
        """The highest version of Produce to write with; None for the highest there is."""
        return None if self.is_version_2 else _MOST_PRODUCE_VERSION_1

    def check_open(self) -> None:
        """Refuse what has to happen inside a transaction.

        Raises:
            LocalProtocolError: none is open.
        """
        if self._state is not _State.OPEN:
            raise LocalProtocolError(self._state.value)

    def check_ready(self) -> None:
        """Refuse to begin while something is not ended.

        Raises:
            LocalProtocolError: a transaction is open, or its end is not known.
        """
        if not self.is_ready:
            raise LocalProtocolError(self._state.value)

    def begin(self, *, is_anew: bool = False) -> Identity:
        """Begin a transaction; who writes in it.

        Args:
            is_anew: in an epoch that no leader has seen yet.

        Raises:
            LocalProtocolError: one is open.
            BrokerError: this user may not, or the broker takes no time-out as long.
        """
        self.check_ready()
        self._is_epoch_spent |= is_anew and not self.is_version_2  # there each one has its own
        if self._writer is None or self._is_epoch_spent:
            with self._router.one_call():
                self._check_succession()
                self._writer = self._begun()
                self.transactional_id = self._writer.transactional_id
                self._is_epoch_spent = False
                self.is_version_2 = has_version_2(self._router, {self.transactional_id})
        self._state = _State.OPEN
        return Identity(self._writer.producer_id, self._writer.epoch, is_transactional=True)

    def _begun(self) -> Writer:
        wanted, before = self.transactional_id, self._writer
        if self._spare_id is None or before is not None:
            return begin_writer(self._router, wanted, self._timeout_ms, after=before)
        return begin_new_writer(self._router, wanted, self._timeout_ms, self._spare_id)

    def _check_succession(self) -> None:
        """Refuse to take the id back from whoever has taken it over since the last end.

        Who asks for the epoch after an old one is refused, but only once brokers have aborted what
        the one who has the id has open: so it is looked at first. That may be ourselves, where
        partitions or groups were announced by a request that nobody answered: it is aborted here,
        as brokers abort it by a fence, and then refuse us as well.
        """
        if self._writer is None:
            return
        wanted = self.transactional_id
        try:
            found = find_transactions(self._router, {wanted})[wanted]
        except UnsupportedVersion:  # before Kafka 3.0
            return
        if found is None:
            return
        ours, last = self._writer, found.writer
        if last.producer_id != ours.producer_id or last.epoch > ours.epoch:
            self._state = _State.FENCED
            raise refusal(PRODUCER_FENCED, "DescribeTransactions", str(self._writer))
        self._writer = last  # of an epoch less where the abort has taken none
        if found.state == ONGOING:
            abort_transactions(self._router, [last])

    def admit(self, partitions: Iterable[TopicPartition]) -> None:
        """Have `partitions` in the transaction before something is sent to them."""
        new = set(partitions) - self._partitions
        if not new:
            return
        if not self.is_version_2:
            self._add_partitions(new)
        self._partitions |= new

    def add_offsets(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        group: str,
        member: GroupMember | None = None,
    ) -> None:
        """Commit offsets of a group with the transaction.

        Raises:
            LocalProtocolError: no transaction is open, or earlier offsets may come late.
            BrokerError: the group knows no such member, this user may not, ….
        """
        self.check_open()
        if not offsets:
            return
        for item in sorted(offsets):
            if (group, item) in self._late_offsets:
                raise LocalProtocolError(
                    f"offset {offsets[item].offset} of group {group!r} for {item}: an earlier "
                    "offset was asked to be committed in this transaction, which nobody answered. "
                    "That request may come late, and put the group back: abort the transaction, "
                    "and begin another"
                )
        with self._router.one_call():
            if not self.is_version_2 and group not in self._groups:
                self._add_group(group)
            self._groups.add(group)
            self._commit_offsets(offsets, group, member or _NOBODY)

    def end(
        self, *, commit: bool, within_s: float | None = None, may_come_late: bool = False
    ) -> None:
        """End the transaction. Where the outcome is not known, nothing else but this can be done.

        What was denied is ended too: it may be aborted, which asks nobody, and the next one begins
        with a new epoch. So it does once the coordinator has forgotten the id: nothing of it is
        left to abort. Whoever was fenced stays so, or two would take over from each other.

        Args:
            commit: or abort.
            within_s: gives up after this instead of default.api.timeout.ms.
            may_come_late: whether rows of it were sent by a request that nobody answered.

        Raises:
            LocalProtocolError: none is open, or it is being ended the other way.
            BrokerError: it timed out, or another producer has taken over. Of a commit it says
                whether an earlier try may have done it.
            KafkaProtoError: the coordinator does not answer; call this again.
        """
        ending = _State.COMMITTING if commit else _State.ABORTING
        if self._state is _State.DENIED and not commit:
            self._state = _State.READY
            return
        if self._state not in {_State.OPEN, ending}:
            raise LocalProtocolError(self._state.value)
        is_late_possible = not commit or may_come_late or self._unanswered > 0
        is_back_at_1 = False
        ended = self._writer
        if self._is_touched:
            writer = self._checked_writer
            self._state = ending
            try:
                router = self._router if within_s is None else self._router.within(within_s)
                ended = end_transactions(router, [writer], commit=commit, tries=self._ends)[writer]
                is_late_possible |= self._ends[writer] > 1
                is_back_at_1 = self.is_version_2 and ended == writer
            except BrokerError as error:
                if error.code == INVALID_PRODUCER_ID_MAPPING:
                    # Forgotten, and nothing is open; or with somebody else by now, as the next
                    # begin finds out: without knowing who we were it would take the id back.
                    denied = _State.DENIED if commit else _State.READY
                    self._forget(writer, denied, is_epoch_spent=True)
                    if not commit:
                        return
                elif commit and error.code == TRANSACTION_ABORTABLE:
                    self._state = _State.OPEN  # it is: until the abort readers wait for it
                elif error.code == INVALID_TXN_STATE and self.is_version_2:
                    # It was aborted, which has taken an epoch: as it timed out, or by a successor
                    # that has the one after that, or will. The next begin finds out.
                    aborted = writer._replace(epoch=writer.epoch + 1)
                    self._forget(aborted, _State.DENIED, is_epoch_spent=True)
                elif not is_retriable(error):
                    is_fenced = error.code in FENCED_CODES
                    self._forget(None, _State.FENCED if is_fenced else _State.DENIED)
                raise
        # What was given up may still reach a broker, and so may an end that nobody answered, which
        # would end the next transaction, or such offsets, which would be committed with it, or such
        # partitions and groups, which would begin it, and have its time run out: under a new epoch
        # all are refused. So are rows that were sent again: a leader that meets them between two
        # transactions of an epoch refuses the next one's sequences as out of order.
        # Version 2 gives an epoch with each end; where it does not, the cluster has gone back to
        # version 1.
        is_epoch_spent = is_back_at_1 or (is_late_possible and not self.is_version_2)
        self._forget(ended, is_epoch_spent=is_epoch_spent)

    def leave(self) -> Writer | None:
        """Leave the open transaction to be ended by somebody else; None where nothing is in it."""
        self.check_open()
        writer = self._checked_writer if self._is_touched else None
        self._forget(None)
        return writer

    @property
    def _is_touched(self) -> bool:
        """Whether there is something to end: brokers refuse to commit nothing."""
        return bool(self._partitions or self._groups)

    @property
    def _checked_writer(self) -> Writer:
        assert self._writer is not None  # noqa: S101 - begin has made it
        return self._writer

    def _forget(
        self,
        writer: Writer | None,
        state: _State = _State.READY,
        *,
        is_epoch_spent: bool = False,
    ) -> None:
        """What was open has ended: who goes on, and how.

        All of it in one step, which no Ctrl-C can part: an end that is asked for again under the
        next epoch would be refused, and taken for none.
        """
        (
            self._writer,
            self._state,
            self._is_epoch_spent,
            self._partitions,
            self._groups,
            self._ends,
            self._late_offsets,
            self._unanswered,
        ) = writer, state, is_epoch_spent, set(), set(), Counter(), set(), 0

    def _add_partitions(self, partitions: Collection[TopicPartition]) -> None:
        writer = self._checked_writer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=writer.transactional_id,
            v3_and_below_producer_id=writer.producer_id,
            v3_and_below_producer_epoch=writer.epoch,
            v3_and_below_topics=tuple(
                AddedTopic(name=topic, partitions=numbers)
                for topic, numbers in numbers_by_topic(partitions)
            ),
        )

        def read(answer: AddPartitionsToTxnResponse) -> None:
            codes = {
                TopicPartition(topic.name, item.partition_index): item.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for item in topic.results_by_partition
            }
            # Those that were not attempted last: something was wrong with another.
            for item in sorted(codes, key=lambda item: codes[item] == OPERATION_NOT_ATTEMPTED):
                checked(codes[item], "AddPartitionsToTxn", f"{writer}, {item}")
            check_complete(f"AddPartitionsToTxn, {writer}", partitions, codes)

        self._announce("add partitions", request, read, _MOST_ADD_PARTITIONS)

    def _add_group(self, group: str) -> None:
        writer = self._checked_writer
        request = AddOffsetsToTxnRequest(
            transactional_id=writer.transactional_id,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            group_id=group,
        )

        def read(answer: AddOffsetsToTxnResponse) -> None:
            checked(answer.error_code, "AddOffsetsToTxn", f"{writer}, group {group!r}")

        self._announce("add offsets", request, read, None)

    def _announce(
        self, what: str, request: object, read: Callable[[Any], None], most: int | None
    ) -> None:
        writer = self._checked_writer
        key = writer.transactional_id
        self._ask(f"{what} to {writer}", key, request, read, most, TRANSACTION_KEY)

    def _ask(
        self,
        what: str,
        key: str,
        request: object,
        read: Callable[[Any], None],
        most: int | None,
        kind: int = GROUP_KEY,
    ) -> None:
        """As `Router.ask_coordinator`; tries that nobody answers are counted."""

        def read_answer(answer: Any) -> None:
            self._unanswered -= 1
            read(answer)

        def most_of(_: Connection) -> int | None:
            self._unanswered += 1  # the coordinator is reached: the request is what it gets next
            return most

        self._router.ask_coordinator(what, key, request, read_answer, most_of, kind)

    def _commit_offsets(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        group: str,
        member: GroupMember,
    ) -> None:
        writer = self._checked_writer
        request = TxnOffsetCommitRequest(
            transactional_id=writer.transactional_id,
            group_id=group,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=_topics(offsets),
        )

        def read(answer: TxnOffsetCommitResponse) -> None:
            codes = {
                TopicPartition(topic.name, item.partition_index): item.error_code
                for topic in answer.topics
                for item in topic.partitions
            }
            for item, code in codes.items():
                subject = f"{writer}, group {group!r}, {item}"
                if code in NO_MEMBER_ANY_MORE:
                    who = f"member {member.member_id!r}: {NO_MEMBER_ANY_MORE[code]}"
                    raise BrokerError(code, "TxnOffsetCommit", subject, who)
                checked(code, "TxnOffsetCommit", subject)
            check_complete(f"TxnOffsetCommit, {writer}, group {group!r}", offsets, codes)

        most = _MOST_OFFSETS_BY_NAME if self.is_version_2 else _MOST_OFFSETS_VERSION_1
        unanswered = self._unanswered
        try:
            self._ask(f"commit offsets in {writer}", group, request, read, most)
        finally:
            if self._unanswered > unanswered:
                self._late_offsets |= {(group, item) for item in offsets}


def transactions_for(
    config: ProducerConfig, router: Router, spare_id: Callable[[str], str] | None
) -> Transactions | None:
    """Of the producer that is configured so; None without transactional.id."""
    if config.transactional_id is None:
        return None
    timeout_s = config.transaction_timeout_s
    timeout_ms = None if timeout_s is None else round(timeout_s * 1000)
    return Transactions(router, config.transactional_id, timeout_ms, spare_id)


def check_group(group: object, member: object) -> None:
    """Refuse what names no group: others' clients take the member alone, which knows its group."""
    if not isinstance(group, str):
        raise ConfigError("group", group, "expected the group's name, and behind it its member")
    if not isinstance(member, GroupMember | None):
        raise ConfigError("member", member, "expected Consumer.group_member, or None")


def _topics(
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> tuple[TxnOffsetCommitRequest.Topic, ...]:
    topic_of = TxnOffsetCommitRequest.Topic
    return tuple(
        topic_of(
            name=topic,
            partitions=tuple(
                topic_of.Partition(
                    partition_index=item.partition,
                    committed_offset=offsets[item].offset,
                    committed_leader_epoch=offsets[item].leader_epoch,
                    committed_metadata=offsets[item].metadata,
                )
                for item in own
            ),
        )
        for topic, own in by_topic(sorted(offsets))
    )
