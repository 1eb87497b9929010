"""How transactions of many producers become one commit: decide, end each, say that it is done.

    producers  write, flush, leave their transactions open
    here       look whether all are still open → write the decision → look again → commit it
               → end each → "done"

The decision is the commit: before it everything can be aborted, after it everything has to be
committed, whoever does it and however often. What a look beforehand finds (a transaction that
timed out, or was taken over) fails while all of it can still be repeated. Nothing that takes time
comes behind the second one.
Protocol: as in `cluster.transactions` and `decisions`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark_kafkaproto.client.decisions import Deciding, Decision, DecisionLog
from pyspark_kafkaproto.cluster.transactions import (
    GONE_CODES,
    ONGOING,
    DescribedTransaction,
    ListedTransaction,
    Writer,
    abort_transactions,
    describe_transactions,
    end_transactions,
    fence,
    find_transactions,
    list_transactions,
)
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError, LocalProtocolError

_log = logging.getLogger(__name__)

# How much of a transaction's time has to be left when it is decided: a third for the decision, the
# rest for an election behind it, and all the ends. Of short times half.
_LEAST_LEFT_MS = 45_000
_LEAST_PART_LEFT = 2
_DECIDE_PART = 3
# How long one that is left over is tried to be aborted: its abort may reach the coordinator late.
_SWEEP_S = 5.0
_SWEEP_PAUSE_S = 0.1
# States of what is committed, or is to be whatever happens.
_COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
# What follows a name in the ids of its writers: which job where names have several, and who in it.
_SLOT = re.compile(r"(?:[0-9a-f]{8}-)?\d+-\d+")
# Names are those of streaming queries, or of batch jobs. What has another one is under a longer
# prefix, and none of ours.
_NAME = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|batch"
_NAME_AND_SLOT = re.compile(rf"({_NAME})-{_SLOT.pattern}")


def commit_batch(
    log: DecisionLog,
    name: str,
    batch: str,
    writers: Collection[Writer],
    *,
    job: str = "",
    rows: int | None = None,
) -> bool:
    """Commit the transactions of one batch, all or none; False where it was committed before.

    What killed attempts have left open is aborted behind it.

    Args:
        log: where the decision goes.
        name: whose batch it is; names have one batch at a time.
        batch: which; the same one is committed once, however often this is called. Where there are
            no jobs it is a number, and none is committed after a later one.
        writers: who has written in it. If the batch was decided before, it is the writers of that
            decision who count, and these are not looked at.
        job: of `name`, whose transactional ids it is in (`DecisionLog.ids_of`); all of them if
            there are no jobs.
        rows: how many the batch has, where that is known. It is noted with the decision; a batch
            that was decided with another number is warned of.

    Raises:
        LocalProtocolError: a transaction has timed out or was taken over; says whether before the
            decision (nothing is committed, the batch can be repeated), or after. Or somebody has
            decided a later batch.
        BrokerError: somebody else decides for `name` now, or this user may not.
    """
    with log.deciding(name) as deciding:
        if not job and deciding.last is not None:
            check_order(log, name, batch, deciding.last.batch)
        is_new = _commit(deciding, batch, writers, rows)
        # Here, where whoever else decided is fenced.
        _sweep_rest(log, name, job, None if job else deciding)
    return is_new


def is_behind(batch: str, last: str | None) -> bool:
    """Whether a query that has decided `last`, None for nothing yet, has gone beyond `batch`."""
    return last is not None and int(batch) < int(last)


def check_order(log: DecisionLog, name: str, batch: str, last: str | None) -> None:
    """Refuse a batch of a query that has decided a later one, `last`; None for nothing yet.

    Raises:
        LocalProtocolError: it has.
    """
    if is_behind(batch, last):
        raise LocalProtocolError(
            f"query {name} is at batch {batch}, and has decided batch {last} already: its "
            f"checkpoint is older than what it has written (topic {log.topic}), or another driver "
            "of it runs. With another transactionalIdPrefix it goes on, and writes again what came "
            "after the checkpoint"
        )


def _commit(deciding: Deciding, batch: str, writers: Collection[Writer], rows: int | None) -> bool:
    last = deciding.last
    if last is not None and last.batch == batch:
        _tell_of_other_rows(deciding, last, rows)
        complete(deciding)
        return False
    if last is not None and not last.is_done:
        raise _unfinished(deciding.log, deciding.name, last, batch)
    if writers:
        # Twice: coordinators that are away are waited for before the decision's own time runs.
        _check_all_open(deciding.log, batch, writers)
        deciding.write(
            Decision(batch, False, tuple(sorted(writers)), rows),
            lambda: _check_all_open(deciding.log, batch, writers),
        )
        complete(deciding)
    return True


def _tell_of_other_rows(deciding: Deciding, last: Decision, rows: int | None) -> None:
    """Warn where a batch that is decided comes again with another number of rows.

    No error: a source that gives other rows when it is read again does so too, as behind a join
    with a table that has changed, and its query could not go on then.
    """
    if None not in (rows, last.rows) and rows != last.rows:
        _log.warning(
            "batch %s of query %s was decided with %d rows and comes again with %d, of which none "
            "is written: its source gives other rows when it is read again, or its checkpoint is "
            "older than what it has written (topic %s), and rows of the batch may be missing",
            last.batch,
            deciding.name,
            last.rows,
            rows,
            deciding.log.topic,
        )


def abort_batch(
    log: DecisionLog,
    name: str,
    batch: str,
    writers: Collection[Writer],
    *,
    job: str = "",
    is_undecided: bool = False,
) -> bool:
    """Abort what was written for a batch that failed; False where it was decided to commit it.

    A batch whose commit failed may be decided nevertheless: then it is completed. Transactions that
    another batch has decided to commit are not aborted. What killed attempts have left open is
    aborted either way. If it cannot be known for certain what was decided, this fails and aborts
    nothing.

    Args:
        log: where decisions are.
        name: whose batch it is.
        batch: which.
        writers: who is known to have written in it.
        job: of `name`: with it nothing of other jobs is touched, and nobody fenced, who may well
            have fenced this one. Without it whoever decides for `name` is fenced.
        is_undecided: whether nobody can have decided this job: the log is not asked then, which
            may be what has failed. That it was given up is written to it last, if it can be.

    Raises:
        KafkaProtoError: what was decided is not known, or a transaction could not be aborted.
    """
    deciding, last = None, None
    with ExitStack() as held:
        with _telling_what_stays_open(log, batch):
            if not job:
                deciding = held.enter_context(_deciding_surely(log, name))
                last = deciding.last
            elif not is_undecided:
                last = log.read(surely=True).get(name)
        decided = last if last is not None and last.batch == batch else None
        if decided is None:
            abort_transactions(log.router, writers)
        elif not decided.is_done:  # its transactions do not live long, and nobody may come after
            complete(deciding or held.enter_context(_deciding_surely(log, name)))
        # Where another driver has come after, what is open is that one's.
        if job or last is None or not is_behind(batch, last.batch):
            _sweep_rest(log, name, job, deciding)
        if job and decided is None:
            _give_up(log, name, batch, job)
    return decided is None


def _give_up(log: DecisionLog, name: str, batch: str, job: str) -> None:
    """Tell attempts that write from here on (`kept_unless_over`); what has begun before is swept.

    A stream's are left to its next batch: that one may have the number of this one.
    """
    try:
        log.give_up(batch)
    except KafkaProtoError as error:
        _log.warning("late attempts of a job that was given up are not told: %s", error)
    else:
        _sweep_rest(log, name, job, None)


@contextmanager
def _deciding_surely(log: DecisionLog, name: str) -> Iterator[Deciding]:
    with log.deciding(name) as deciding:
        deciding.make_sure()
        yield deciding


@contextmanager
def _telling_what_stays_open(log: DecisionLog, batch: str) -> Iterator[None]:
    try:
        yield
    except KafkaProtoError as error:
        error.add_line(
            f"Whether batch {batch} is decided is not known, so nothing of it is aborted. "
            "What is open stays so, and readers with read_committed wait for it, until "
            f"transaction.timeout.ms, or {log.command('recover')}"
        )
        raise


def recover(log: DecisionLog, name: str, *, accept_missing: bool = False) -> Decision | None:
    """Complete what was decided for `name`, and abort what was not; the decision, if one was open.

    Args:
        log: where decisions are.
        name: whose.
        accept_missing: whether a decision that cannot be completed any more, because transactions
            have timed out meanwhile, is taken for done.

    Raises:
        LocalProtocolError: such a decision, unless that is accepted.
    """
    with _deciding_surely(log, name) as deciding:
        last = deciding.last
        is_open = last is not None and not last.is_done
        if is_open:
            complete(deciding, accept_missing=accept_missing)
        sweep(log, name, deciding=deciding)
    return last if is_open else None


def complete(deciding: Deciding, *, accept_missing: bool = False) -> None:
    """End each transaction of the last decision, and say that it is done.

    Raises:
        KafkaProtoError: that did not come through; says that the decision holds all the same.
    """
    decision = deciding.last
    if decision is None or decision.is_done:
        return
    try:
        missing = _end_all(deciding.log, decision)
        if missing and accept_missing:
            _log.warning("%s", _missing_text(decision, missing, deciding.log))
        if accept_missing or not missing:
            deciding.write(replace(decision, is_done=True))
    except KafkaProtoError as error:
        error.add_line(
            f"{decision} is decided all the same. The next run completes it, or "
            f"{deciding.log.command('recover')}, within transaction.timeout.ms of its first row. "
            "A batch job needs no other run: one would write its rows once again"
        )
        raise
    if missing and not accept_missing:
        raise LocalProtocolError(_missing_text(decision, missing, deciding.log)) from missing[0]


def _end_all(log: DecisionLog, decision: Decision) -> list[BrokerError]:
    """What is gone, with the brokers' reasons; the rest is committed all the same."""
    try:
        end_transactions(log.router, decision.writers, commit=True)
    except BrokerError as error:
        if error.code not in GONE_CODES:
            raise
        return _end_one_by_one(log, decision)
    return []


def _end_one_by_one(log: DecisionLog, decision: Decision) -> list[BrokerError]:
    missing = {}
    for writer in decision.writers:
        try:
            end_transactions(log.router, [writer], commit=True)
        except BrokerError as error:
            if error.code not in GONE_CODES:
                raise
            missing[writer] = error
    found = find_transactions(log.router, {writer.transactional_id for writer in missing})
    return [
        error
        for writer, error in missing.items()
        if not _is_committed(writer, found[writer.transactional_id])
    ]


def _is_committed(writer: Writer, found: DescribedTransaction | None) -> bool:
    """Whether somebody has committed it while transactions were of the other version.

    An end raises the epoch in version 2 alone, and brokers take it a second time only in the
    version of the first. Whatever else ends a transaction does not end it by a commit.
    """
    if found is None or found.state not in _COMMITTED:
        return False
    return found.writer in {writer, writer._replace(epoch=writer.epoch + 1)}


def _missing_text(decision: Decision, missing: Collection[BrokerError], log: DecisionLog) -> str:
    return (
        f"{decision} was decided, but {len(missing)} of its transactions are gone, and what was "
        f"written in them: {'; '.join(map(str, missing))}. The time between the flush of a task "
        "and the commit of its batch was more than transaction.timeout.ms, or the transactional "
        f"ids were used by somebody else. {log.command('recover', '--accept-missing')} goes on "
        "without"
    )


def sweep(log: DecisionLog, name: str, job: str = "", deciding: Deciding | None = None) -> None:
    """Abort what is open of `name`: killed attempts, and those that came too late.

    Args:
        log: whose prefix it is.
        name: whose transactions.
        job: of which job of `name`; of all if it is empty.
        deciding: who decides for `name`: before each abort it is made sure that nobody else does
            by now, who may have decided just that transaction. None: `job` is one's own.

    Raises:
        KafkaProtoError: one could not be aborted, or somebody else decides.
    """
    deadline = log.router.deadline()
    left = _open_ids(log, name, job)
    while left:
        for transactional_id in sorted(left):
            if deciding is not None:
                deciding.make_sure()
                if transactional_id in deciding.ids_to_commit:
                    left.remove(transactional_id)
                    continue
            _log.info("transaction %r is left over, and aborted", transactional_id)
            fence(log.router.within(_SWEEP_S), transactional_id)
        left &= _open_ids(log, name, job)
        if left:  # their coordinators were at something else with them
            deadline.check(f"abort what is left over, {', '.join(sorted(left))}")
            time.sleep(_SWEEP_PAUSE_S)


def _open_ids(log: DecisionLog, name: str, job: str) -> set[str]:
    """The transactional ids of `name`, or of one of its jobs, that have a transaction open."""
    ids = log.ids_of(name, job)
    listed = (item.transactional_id for item in list_transactions(log.router, ids, {ONGOING}))
    return {each for each in listed if _SLOT.fullmatch(each.removeprefix(ids))}


def _sweep_rest(log: DecisionLog, name: str, job: str, deciding: Deciding | None) -> None:
    """Sweep behind a batch that was ended, which holds without that."""
    try:
        sweep(log, name, job, deciding)
    except KafkaProtoError as error:
        _log.warning(
            "transactions that are left over under %s stay open until they time out: %s",
            log.ids_of(name, job),
            error,
        )


def open_transactions(log: DecisionLog) -> Mapping[str, list[ListedTransaction]]:
    """What is open under the log's prefix, by name."""
    start = f"{log.prefix}-"
    found: dict[str, list[ListedTransaction]] = {}
    for item in list_transactions(log.router, start, {ONGOING}):
        parts = _NAME_AND_SLOT.fullmatch(item.transactional_id.removeprefix(start))
        if parts:
            found.setdefault(parts[1], []).append(item)
    return found


def _check_all_open(log: DecisionLog, batch: str, writers: Collection[Writer]) -> float:
    """Refuse to decide about transactions of which one cannot be committed any more.

    Returns:
        How many seconds the decision may take.

    Raises:
        LocalProtocolError: says which, and why.
    """
    by_id = {writer.transactional_id: writer for writer in writers}
    found = describe_transactions(log.router, by_id)
    now_ms = int(_now_s() * 1000)
    states = {writer: _why_not(writer, found[name], now_ms) for name, writer in by_id.items()}
    gone = [f"{writer} is {why}" for writer, why in sorted(states.items()) if why]
    if gone:
        raise LocalProtocolError(
            f"batch {batch} cannot be committed, nothing of it is: {'; '.join(gone)}. Either "
            "it took longer than transaction.timeout.ms, or a late attempt of a task has taken it "
            "over, or somebody else uses the same transactionalIdPrefix"
        )
    return min(map(_least_left_ms, found.values())) / 1000 / _DECIDE_PART


def _why_not(writer: Writer, found: DescribedTransaction, now_ms: int) -> str:
    """What of a transaction speaks against deciding about it; empty if nothing does."""
    if found.writer != writer:
        return f"{found.state}, and of {found.writer} now"
    if found.state != ONGOING or found.started_at_ms is None:
        return found.state
    # Brokers look every ten seconds for those that are over time: one of them is still Ongoing.
    age_ms = now_ms - found.started_at_ms
    least_ms = _least_left_ms(found)
    if found.timeout_ms - age_ms >= least_ms:
        return ""
    return (
        f"open for {age_ms // 1000} of its {found.timeout_ms / 1000:g} s by this machine's clock, "
        "which leaves too little for its commit"
    )


def _least_left_ms(found: DescribedTransaction) -> int:
    return min(_LEAST_LEFT_MS, found.timeout_ms // _LEAST_PART_LEFT)


def _now_s() -> float:
    """The time as brokers should have it too."""
    return time.time()


def _unfinished(log: DecisionLog, name: str, last: Decision, batch: str) -> LocalProtocolError:
    return LocalProtocolError(
        f"{last} of {name!r} is not complete, and batch {batch} comes: {log.command('recover')} "
        "completes it"
    )
