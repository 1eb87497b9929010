"""Transactions at their coordinators: ids for producers, ends, and which there are.

A transaction is named by three things: its transactional id, and the producer id and epoch that
wrote in it. Whoever has the three can end it, in whatever process it was begun.
Protocol: KIP-98, KIP-360; KIP-664 (listing); KIP-890 (version 2, where the cluster's feature
`transaction.version` says so: each end raises the epoch).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask, ask_all_brokers, cut
from pyspark_kafkaproto.cluster.coordinators import TRANSACTION_KEY
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import Broker, TopicPartition
from pyspark_kafkaproto.error_codes import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REGULAR_EXPRESSION,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_NOT_FOUND,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pyspark_kafkaproto.messages.end_txn import EndTxnRequest, EndTxnResponse
from pyspark_kafkaproto.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyspark_kafkaproto.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from pyspark_kafkaproto.net import Connection, Deadline, Endpoint

_T = TypeVar("_T")

ONGOING = "Ongoing"
# Those of a transaction that has begun and not ended, and all that coordinators list.
_OPEN_STATES = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
TRANSACTION_STATES = ("Empty", *_OPEN_STATES, "CompleteCommit", "CompleteAbort")

_TRANSACTION_VERSION = "transaction.version"
_LAST_END_WITHOUT_BUMP = 4
_IDS_PER_REQUEST = 100

# A coordinator fences whose transaction it has timed out, as it does whoever was taken over; and
# who asked twice for an epoch, if the first request comes behind the second.
FENCED: Final = (
    "another producer has taken over this transactional id, or the transaction timed out "
    "(transaction.timeout.ms), or a begin of this producer that nobody answered came late: it may "
    "not go on"
)
FENCED_CODES: Final = frozenset({INVALID_PRODUCER_EPOCH, PRODUCER_FENCED})
# What an EndTxn answers where a transaction is not any more what it was: ended, or another's.
GONE_CODES: Final = FENCED_CODES | {INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING}
# What an error code means for whoever writes in a transaction, whichever API answers it.
ADVICE: Final[Mapping[int, str]] = {
    INVALID_TXN_STATE: "the transaction was ended the other way, or timed out before it was ended "
    "(transaction.timeout.ms)",
    INVALID_PRODUCER_EPOCH: FENCED,
    PRODUCER_FENCED: FENCED,
    INVALID_PRODUCER_ID_MAPPING: "the transactional id has expired, or another producer has it",
    TRANSACTIONAL_ID_NOT_FOUND: "no coordinator knows it: check it (kafkaproto transactions list); "
    "brokers forget one that nobody uses (transactional.id.expiration.ms)",
}

# Of a commit, behind what the last answer says.
_IN_DOUBT: Final = (
    "the transaction may have been committed by an earlier try, whose end nobody has heard: look "
    "at what it wrote before you write that again"
)

# Kafka's brokers allow 15 minutes unless transaction.max.timeout.ms says otherwise.
TIMEOUTS_MS = (900_000, 300_000, 60_000, 10_000)


class Writer(NamedTuple):
    """Who writes in a transaction."""

    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"transaction {self.transactional_id!r} ({self.producer_id}:{self.epoch})"


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transaction as its coordinator, a broker's id, lists it; see `TRANSACTION_STATES`."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transaction with who writes in it, and where; `started_at_ms` is since 1970.

    That is None where none is open. In an ongoing one `partitions` are those written to, in one
    that ends those that have no marker yet. `coordinator` is a broker's id, None where it was not
    asked for, or is not known (any more).
    """

    writer: Writer
    state: str
    timeout_ms: int
    started_at_ms: int | None
    partitions: frozenset[TopicPartition]
    coordinator: int | None = None


def is_version_2(connection: Connection) -> bool:
    """Whether transactions of the cluster are those of KIP-890."""
    return connection.features.get(_TRANSACTION_VERSION, 0) >= 2


def has_version_2(router: Router, transactional_ids: Collection[str]) -> bool:
    """Whether coordinators have transactions of KIP-890: all or none, so any of these tells."""
    deadline = router.deadline()

    def attempt() -> bool:
        soon = deadline.sooner(router.config.request_timeout_s)
        places = router.coordinators(transactional_ids, soon, TRANSACTION_KEY).values()
        failures: list[KafkaProtoError] = []
        for place in dict.fromkeys(places):
            try:
                if isinstance(place, Endpoint):
                    return is_version_2(router.connect(place, soon))
                failures.append(place)
            except (ConnectionFailed, DeadlineExceeded) as error:
                failures.append(error)
        raise failures[0]

    what = f"find the coordinator of transactional id {min(transactional_ids)!r}"
    return router.retrying(what, attempt, deadline)


def begin_writer(
    router: Router,
    transactional_id: str,
    timeout_ms: int | None = None,
    after: Writer | None = None,
) -> Writer:
    """A new epoch of a transactional id.

    Whoever had it before is fenced; what he left open is aborted before this returns.

    Args:
        router: whom to ask.
        transactional_id: which.
        timeout_ms: how long a transaction may stay open; None: as long as the broker allows, of
            TIMEOUTS_MS.
        after: who has to be the one that had it, where brokers can tell; None: whoever that was.

    Raises:
        BrokerError: the broker allows no time-out as long, or this user may not; or somebody else
            than `after` has it.
    """
    for wanted_ms in TIMEOUTS_MS if timeout_ms is None else (timeout_ms,):
        try:
            return _begin_writer(router, transactional_id, wanted_ms, after)
        except UnsupportedVersion:
            if after is None:
                raise
            # Before Kafka 2.5 (KIP-360) nobody can be named: whoever asks has it.
            return begin_writer(router, transactional_id, timeout_ms)
        except BrokerError as error:
            if error.code != INVALID_TRANSACTION_TIMEOUT:
                raise
            refused = error
    raise refused


def begin_new_writer(
    router: Router, transactional_id: str, timeout_ms: int | None, spare_id: Callable[[str], str]
) -> Writer:
    """As `begin_writer`, of an id that nobody else has, by one request that was answered.

    One that was not may reach its coordinator late, which then aborts what is open with the id,
    also where that is decided by others to be committed. So the next try has another id.

    Args:
        router: whom to ask.
        transactional_id: which is tried first.
        timeout_ms: as for `begin_writer`.
        spare_id: from the id that was tried in vain the next one.

    Raises:
        BrokerError: as `begin_writer`.
    """
    wanted = transactional_id

    def attempt() -> Writer:
        nonlocal wanted
        try:
            with router.trying_once():
                return begin_writer(router, wanted, timeout_ms)
        except (ConnectionFailed, DeadlineExceeded) as error:
            if not isinstance(error, ConnectionFailed) or error.was_connected:
                wanted = spare_id(wanted)
            raise

    what = f"begin with transactional id {transactional_id!r}"
    with router.one_call():  # or the last try would have a time of its own
        return router.retrying(what, attempt, router.deadline())


def _begin_writer(
    router: Router, transactional_id: str, timeout_ms: int, after: Writer | None
) -> Writer:
    def read(answer: InitProducerIdResponse) -> Writer:
        subject = f"transactional id {transactional_id!r}"
        if answer.error_code == INVALID_TRANSACTION_TIMEOUT:
            why = f"transaction.timeout.ms is {timeout_ms}, more than the broker's "
            why += "transaction.max.timeout.ms (15 minutes unless it was set)"
            raise BrokerError(answer.error_code, "InitProducerId", subject, why)
        checked(answer.error_code, "InitProducerId", subject)
        return Writer(transactional_id, answer.producer_id, answer.producer_epoch)

    return _init_producer_id(router, "begin with", transactional_id, timeout_ms, read, after)


def fence(router: Router, transactional_id: str) -> None:
    """Fence whoever has a transactional id, and have what he left open aborted.

    Returns when that is noted, as the coordinator then sees to it: partitions that take no markers
    at the moment are not waited for. Where it was at something else with this id, it is noted only
    by the next call: the transaction is ONGOING still.

    Raises:
        BrokerError: this user may not.
    """

    def read(answer: InitProducerIdResponse) -> None:
        if answer.error_code != CONCURRENT_TRANSACTIONS:
            checked(answer.error_code, "InitProducerId", f"transactional id {transactional_id!r}")

    # Nobody writes with it.
    _init_producer_id(router, "fence", transactional_id, min(TIMEOUTS_MS), read)


def _init_producer_id(
    router: Router,
    what: str,
    transactional_id: str,
    timeout_ms: int,
    read: Callable[[InitProducerIdResponse], _T],
    after: Writer | None = None,
) -> _T:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1 if after is None else after.producer_id,
        producer_epoch=-1 if after is None else after.epoch,
    )
    what = f"{what} transactional id {transactional_id!r}"
    return router.ask_coordinator(what, transactional_id, request, read, kind=TRANSACTION_KEY)


def end_transactions(
    router: Router,
    writers: Collection[Writer],
    *,
    commit: bool,
    tries: Counter[Writer] | None = None,
) -> dict[Writer, Writer]:
    """End each one's transaction, all at once; an end of unknown outcome is repeated unchanged.

    Args:
        router: whom to ask.
        writers: whose.
        commit: or abort.
        tries: how often each was asked for before, where nobody knows what became of that; those
            of now are counted, too.

    Returns:
        Who writes in the next transaction of each (KIP-890: the next epoch).

    Raises:
        BrokerError: one could not be ended so; `usable` has those that were. Of a commit it says
            whether an earlier try may have done it.
    """
    return _end(router, writers, _read_end, commit=commit, tries=tries)


def abort_transactions(router: Router, writers: Collection[Writer]) -> None:
    """Abort each one's transaction, all at once; one that is gone needs no abort.

    Raises:
        KafkaProtoError: one could not be aborted; all others are.
    """

    def read(answer: EndTxnResponse, writer: Writer) -> Writer | BrokerError:
        return writer if answer.error_code in GONE_CODES else _read_end(answer, writer)

    _end(router, writers, read, commit=False)


def _end(
    router: Router,
    writers: Collection[Writer],
    read: Callable[[EndTxnResponse, Writer], Writer | BrokerError],
    *,
    commit: bool,
    tries: Counter[Writer] | None = None,
) -> dict[Writer, Writer]:
    if not writers:
        return {}
    asked: Counter[Writer] = Counter() if tries is None else tries

    def request(part: list[Writer]) -> EndTxnRequest:
        asked.update(part)
        return _end_request(part[0], commit=commit)

    def outcome(answer: EndTxnResponse, part: list[Writer]) -> dict[Writer, Writer | BrokerError]:
        found = read(answer, part[0])
        if answer.error_code == CONCURRENT_TRANSACTIONS:
            asked[part[0]] -= 1  # the coordinator is at another end, and has not begun with this
        if isinstance(found, BrokerError) and commit and asked[part[0]] > 1:
            found = _in_doubt(found)
        return {part[0]: found}

    with router.one_call():  # both questions
        question: Question[Writer, Writer] = Question(
            "commit transactions" if commit else "abort transactions",
            request,
            outcome,
            cut(1),
            # Version 5 is for transactions of version 2 alone, and no other is right with them.
            None
            if has_version_2(router, {writer.transactional_id for writer in writers})
            else _LAST_END_WITHOUT_BUMP,
            note_unsent=asked.subtract,
        )
        return ask(router, question, writers, partial(_places, router))


def _in_doubt(error: BrokerError) -> BrokerError:
    """What refuses a commit that may have been done before."""
    return error.saying("; ".join(filter(None, (error.message, _IN_DOUBT))))


def _places(
    router: Router, writers: Collection[Writer], deadline: Deadline
) -> dict[Writer, Endpoint | BrokerError]:
    ids = {writer.transactional_id for writer in writers}
    found = router.coordinators(ids, deadline, TRANSACTION_KEY)
    return {writer: found[writer.transactional_id] for writer in writers}


def _end_request(writer: Writer, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=writer.transactional_id,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=commit,
    )


def _read_end(answer: EndTxnResponse, writer: Writer) -> Writer | BrokerError:
    if answer.error_code:
        advice = ADVICE.get(answer.error_code, "")
        return BrokerError(answer.error_code, "EndTxn", str(writer), advice)
    if answer.producer_id < 0:
        return writer
    return Writer(writer.transactional_id, answer.producer_id, answer.producer_epoch)


def list_transactions(
    router: Router,
    prefix: str = "",
    states: Collection[str] = (),
    *,
    producer_ids: Collection[int] = (),
    longer_than_s: float | None = None,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """The transactions of all coordinators whose ids begin with `prefix`, sorted by id.

    Args:
        router: whom to ask.
        prefix: of transactional ids; it is compared here.
        states: of TRANSACTION_STATES; none: all.
        producer_ids: whose; none: all.
        longer_than_s: only those that began longer ago, and of them, unless `states` says
            otherwise, those that have not ended: a broker takes it for all that ever began.
        pattern: an expression of RE2's syntax for the whole of an id.

    Raises:
        BrokerError: the pattern is none.
        UnsupportedVersion: a broker is too old for a filter.
    """
    if longer_than_s is not None and not states:
        states = _OPEN_STATES
    request = ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=-1 if longer_than_s is None else round(longer_than_s * 1000),
        transactional_id_pattern=pattern,
    )
    try:
        found = ask_all_brokers(router, "list transactions", request, _read_listed)
    except UnsupportedVersion as error:
        if longer_than_s is not None:
            error.add_line("longer_than_s takes brokers of Kafka 3.8 or later")
        if pattern is not None:
            error.add_line("pattern takes brokers of Kafka 4.1 or later")
        raise
    return [found[name] for name in sorted(found) if name.startswith(prefix)]


def _read_listed(answer: ListTransactionsResponse, broker: Broker) -> dict[str, ListedTransaction]:
    if answer.error_code == INVALID_REGULAR_EXPRESSION:
        why = "it is no regular expression of RE2's syntax"
        raise BrokerError(answer.error_code, "ListTransactions", "the pattern", why)
    checked(answer.error_code, "ListTransactions", f"broker {broker.endpoint}")
    if answer.unknown_state_filters:
        named = ", ".join(answer.unknown_state_filters)
        raise ConfigError("states", named, f"broker {broker.endpoint} knows no such state")
    return {
        item.transactional_id: ListedTransaction(
            item.transactional_id, item.producer_id, item.transaction_state, broker.node_id
        )
        for item in answer.transaction_states
    }


def describe_transactions(
    router: Router, transactional_ids: Collection[str]
) -> dict[str, DescribedTransaction]:
    """Who writes in each, since when, and where.

    Raises:
        BrokerError: there is no such transactional id, or it may not be seen.
    """
    return _describe(router, transactional_ids, _described)


def find_transactions(
    router: Router, transactional_ids: Collection[str]
) -> dict[str, DescribedTransaction | None]:
    """As `describe_transactions`; None where there is no such transactional id."""

    def read(
        item: DescribeTransactionsResponse.TransactionState,
    ) -> DescribedTransaction | BrokerError | None:
        return None if item.error_code == TRANSACTIONAL_ID_NOT_FOUND else _described(item)

    return _describe(router, transactional_ids, read)


def _describe(
    router: Router,
    transactional_ids: Collection[str],
    read: Callable[[DescribeTransactionsResponse.TransactionState], _T | BrokerError],
) -> dict[str, _T]:
    question: Question[str, _T] = Question(
        "describe transactions",
        lambda part: DescribeTransactionsRequest(transactional_ids=tuple(part)),
        lambda answer, _: {item.transactional_id: read(item) for item in answer.transaction_states},
        cut(_IDS_PER_REQUEST),
    )
    return ask(router, question, transactional_ids, partial(coordinator_places, router))


def coordinator_places(
    router: Router, transactional_ids: Collection[str], deadline: Deadline
) -> dict[str, Endpoint | BrokerError]:
    """Where each is coordinated, for `ask`."""
    return router.coordinators(transactional_ids, deadline, TRANSACTION_KEY)


def _described(
    item: DescribeTransactionsResponse.TransactionState,
) -> DescribedTransaction | BrokerError:
    if item.error_code:
        subject = f"transactional id {item.transactional_id!r}"
        return refusal(item.error_code, "DescribeTransactions", subject)
    return DescribedTransaction(
        Writer(item.transactional_id, item.producer_id, item.producer_epoch),
        item.transaction_state,
        item.transaction_timeout_ms,
        None if item.transaction_start_time_ms < 0 else item.transaction_start_time_ms,
        frozenset(
            TopicPartition(topic.topic, number)
            for topic in item.topics
            for number in topic.partitions
        ),
    )


def refusal(code: int, api: str, subject: str) -> BrokerError:
    """The error of a code, with what to do about it."""
    return BrokerError(code, api, subject, ADVICE.get(code, ""))


def checked(code: int, api: str, subject: str) -> None:
    """Raise the error of a code; nothing for 0."""
    if code:
        raise refusal(code, api, subject)
