"""Fetching without an end: what is written is read, from all leaders at once.

A member commits what it was given, so answers are received and judged as a whole before a row of
them goes out; nor may a poll wait for the pieces of a large one.

Each leader has a Fetch of ours about all its partitions, which it holds for up to fetch.max.wait.ms
while it has nothing; whoever answers first is read first. No partition is in two of them: an answer
always begins at the position that its partition has. What a Fetch has to name of them, `sessions`
says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from typing import Final

from pyspark_kafkaproto.client.group import patience
from pyspark_kafkaproto.client.group.failing import Failing
from pyspark_kafkaproto.client.group.reset import MADE_AGAIN, Reset, ResetPolicy
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.group.sessions import FetchSessions
from pyspark_kafkaproto.client.group.under_way import Pending, UnderWay
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.coming import SentFetch
from pyspark_kafkaproto.client.reading.exchange import Exchanges, Part, skimmed
from pyspark_kafkaproto.client.reading.loss import Bounds
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadTask
from pyspark_kafkaproto.client.reading.requests import LedRange, Place, Scope, Terms
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.error_codes import INCONSISTENT_TOPIC_ID, UNKNOWN_TOPIC_ID
from pyspark_kafkaproto.errors import BrokerError, CorruptRecords, KafkaProtoError
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.net import ConsumerConfig, Deadline, Endpoint, retrying
from pyspark_kafkaproto.net.retry import is_retriable

_log = logging.getLogger(__name__)

NO_END: Final = 2**63 - 1

# Whoever was found has to be asked before he is looked for again.
_LEAST_AGE_S: Final = 0.1


class Tail(Exchanges):
    """Reads partitions from their positions on.

    Args:
        positions: where to begin.
        config: the member's.
        router: whom to ask through.
        reset: what becomes of positions that are not there.
        seen: what the positions stand on; topic ids are noted in it.
        sessions: what brokers remember; all is asked for anew.
        left_out: other partitions that have a position, which nothing is read of for now.

    Attributes:
        unheard: partitions without an answer or a failure yet, nor word that nobody leads them.
    """

    def __init__(
        self,
        positions: Mapping[TopicPartition, int],
        config: ConsumerConfig,
        router: Router,
        reset: Reset,
        seen: Seen,
        sessions: FetchSessions,
        left_out: Collection[TopicPartition] = (),
    ) -> None:
        # Nobody has a record at the last offset of all, which would look like the end of the range.
        ranges = tuple(
            OffsetRange(*item, min(start, NO_END - 1), NO_END) for item, start in positions.items()
        )
        task = ReadTask(ranges, {}, seen.topic_ids)
        self._loss: ResetPolicy
        loss = ResetPolicy(router, reset)
        super().__init__(task, config.client, router, loss, fail_on_data_loss=False)
        self._seen = seen
        for partition, start in positions.items():
            self._directory.note_read(partition, seen.epoch_before(partition, start))
        self._max_wait_s = config.fetch_max_wait_s
        self._min_bytes = config.fetch_min_bytes
        self._under_way = UnderWay(self._max_wait_s, config.client.request_timeout_s)
        self._sessions = sessions
        sessions.begin_anew()
        self._ended: Pending | None = None  # the last one; None: others were asked since
        self._max_age_s = max(config.metadata_max_age_s, _LEAST_AGE_S)
        self._known_until = Deadline.after(self._max_age_s)  # who leads, and who follows
        self._until = Deadline.after(0)
        self._tried_at = 0.0  # since when what may fail now has been tried
        self._failing = Failing(config.client)
        self._resting: dict[RangeProgress, Deadline] = {}  # not asked about before that
        self._unreached: dict[Endpoint, patience.Patience] = {}  # waited for in vain
        self._open = [
            RangeProgress(item, item.start or 0, item.start or 0, NO_END) for item in ranges
        ]
        self._held: dict[TopicPartition, RangeProgress] = {}  # of what is paused
        self._topics = {item.topic for item in positions}
        self._left_out = frozenset(left_out)
        self.unheard = set(positions)
        self._refused: set[TopicPartition] = set()

    @property
    def refused(self) -> set[TopicPartition]:
        """Partitions that an error is about which does not pass, as for want of a right."""
        topics = self._directory.refused
        return self._refused | {
            item.topic_partition for item in self._open if item.range.topic in topics
        }

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to read."""
        return not self._open

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Ask for nothing of these, and for all others; of a Fetch under way what comes is given.

        Only where it is good: all else is said again once it is asked for.
        """
        known = [*self._held.values(), *self._open]
        self._held = {
            item.topic_partition: item for item in known if item.topic_partition in partitions
        }
        self._open = [item for item in known if item.topic_partition not in partitions]
        self.unheard -= self._held.keys()
        self._failing.note_answered(self._held, ())

    def close(self) -> None:
        """Let go of what is under way."""
        self._leave_nothing_in_flight()
        self._under_way.close()

    def next_blocks(self, deadline: Deadline) -> list[Block]:
        """What one leader has, or nothing; waits up to `deadline` where none had anything.

        What was asked and is not answered by then is waited for by the next call. Errors that pass
        are raised when they have lasted for default.api.timeout.ms; meanwhile others are read.
        """
        self._until = deadline
        try:
            parts = retrying(
                f"fetch from {self._open[0].topic_partition}",
                self._try,
                deadline,
                self._config.backoff,
                self._recover,
            )
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            self._recover(error)
            # Too little time was left to wait here: so the next poll does.
            self._rest(self._asked or self._open, self._config.retry_backoff_s)
            return []
        if parts is None:
            return []
        answered = self._answered
        self.unheard -= answered.sent.asked.keys()
        self._seen.note_answered([part.progress.topic_partition for part in parts])
        for part in parts:
            if not part.data.error_code:
                self._loss.found(part.progress.topic_partition)
        blocks = self._advance(parts)
        self._let_others_first({block.progress for block in blocks})
        if not blocks and len(parts) + self._unsaid == len(self._asked):
            self._rest_if_early(answered)
        self._send_ahead_to(answered.place)
        return blocks

    def read_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch of the last batch that `next_blocks` gave; -1 where it is not known."""
        return self._directory.read_epoch(partition)

    def _try(self) -> list[Part] | None:
        """What the first leader answers; None: nobody yet.

        Where one fails while others have something to answer, those are waited for.
        """
        while True:
            self._leave_topics_of_the_past()
            if self.is_idle:
                return None
            try:
                self._ask()
                come = self._first_come(self._rest_s())
                if come is not None:
                    return self._answer_of(come)
            except KafkaProtoError as error:
                if not (self._under_way and is_retriable(error)):
                    raise
                self._recover(error)
            if self._until.has_passed:
                return None

    def _leave_topics_of_the_past(self) -> None:
        """Go on in topics that were deleted and made again, where positions of before mean nothing.

        Not where the new one is noticed: rows of before may still have to be handed out there.
        """
        topics = {topic for topic in self._topics if self._is_another(topic)}
        outdated = self._seen.outdated
        another = [
            item
            for item in self._open
            if item.range.topic in topics or item.topic_partition in outdated
        ]
        if not another:
            return
        self.close()  # what is under way begins at other positions
        astray = [item for item in another if item.topic_partition not in self._seen.foreign]
        self._seen.astray |= {item.topic_partition for item in astray}
        bounds = Bounds(self._directory.router, astray)
        for item in astray:
            self._loss.made_again(item, bounds)
        # Their turn comes when they are read: by the new id nothing would show it any more.
        waiting = self._left_out | self._held.keys()
        left = {item for item in waiting if item.topic in topics}
        self._leave_unsure(left.union(item.topic_partition for item in another))
        left -= self._seen.foreign
        self._seen.astray |= left
        self._seen.outdated |= left
        if topics:
            self._seen.is_made_again = True
        self._note_ids(topics)

    def _leave_unsure(self, partitions: set[TopicPartition]) -> None:
        """Read nothing of those whose positions may be of either topic: they are asked for anew."""
        seen = self._seen
        unsure = partitions & seen.foreign - seen.sought
        seen.unsure |= unsure
        seen.astray |= unsure
        self._open = [item for item in self._open if item.topic_partition not in unsure]
        self._held = {at: item for at, item in self._held.items() if at not in unsure}

    # Asking

    def _ask(self, only: Place | None = None) -> None:
        """Ask each broker that has no Fetch of ours, or one of them, about all that it leads.

        A partition that moves to one that has is asked about once he has answered.
        """
        self._tried_at, self._ended = time.monotonic(), None
        if self._known_until.has_passed:
            self._known_until = Deadline.after(self._max_age_s)
            self._directory.begin_anew()
        under_way = self._under_way.partitions
        # Here alone: a rest that is over before anybody waits for its end is to be noticed, too. By
        # one look at the clock: who rests together is asked about together. A session would forget
        # the others, who would wait until it has answered.
        now = time.monotonic()
        self._resting = {item: end for item, end in self._resting.items() if end.at > now}
        due = [item for item in self._open if item not in under_way and item not in self._resting]
        self._asked = due  # all of them fail where no leader can be looked up
        if not due:
            return
        deadline = Deadline.after(self._config.request_timeout_s)
        for place, chosen in self._free_places(due, deadline).items():
            if only in (None, place):
                self._asked = [item for item, _ in chosen]
                self._insist_on_known({item.range.topic for item in self._asked})
                sent = self._send_to(place, chosen, deadline)
                self._under_way.add(sent, place)

    def _send_to(self, place: Place, chosen: list[LedRange], deadline: Deadline) -> SentFetch:
        """The same; a leader that does not take it soon is left alone where there are others."""
        endpoint = place[0]
        if not (self._under_way or self._resting):
            return super()._send_to(place, chosen, deadline)
        was_reached = self._directory.router.has_reached(endpoint)
        first_s = patience.FIRST_S if was_reached else self._config.connection_setup_timeout_s
        tries = self._unreached.get(endpoint) or patience.Patience(first_s)
        deadline = deadline.sooner(tries.begin())
        try:
            sent = super()._send_to(place, chosen, deadline)
        except KafkaProtoError:
            if deadline.has_passed:
                tries.was_in_vain(patience.LONGEST_REST_S)
                self._unreached[endpoint] = tries
            raise
        self._unreached.pop(endpoint, None)
        return sent

    def _free_places(
        self, due: list[RangeProgress], deadline: Deadline
    ) -> dict[Place, list[LedRange]]:
        """Where to ask about them now: whoever has no Fetch of ours, and wants no silence."""
        leaders = self._leaders(due, deadline)
        self._failing.forget(self._directory.is_in_vain)
        self.unheard -= {item.topic_partition for item in due} - leaders.keys()
        silent = self._directory.router.connections.throttling
        talking = {
            item: leader for item, leader in leaders.items() if leader.endpoint not in silent
        }
        resting = [item for item in due if item.topic_partition not in talking]
        self._rest(resting, self._config.retry_backoff_s)
        busy = self._under_way.places
        places = self._by_place(due, talking)
        return {place: chosen for place, chosen in places.items() if place not in busy}

    def _leaders(
        self, due: list[RangeProgress], deadline: Deadline
    ) -> dict[TopicPartition, Leader]:
        """See `Directory.leaders`; that nobody leads any is no error while others are read."""
        partitions = [item.topic_partition for item in due]
        try:
            return self._directory.leaders(partitions, deadline)
        except BrokerError:
            if self._under_way and all(map(self._directory.is_in_vain, partitions)):
                return {}
            raise

    def _send_ahead_to(self, place: Place) -> None:
        """Ask whoever has just answered for more, unless that would have to wait."""
        if self._is_throttled:
            return
        try:
            self._ask(place)
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            # The rows at hand are good: they go out first, and the next call meets it again.
            _log.debug("fetching ahead failed, tried again after these rows: %s", error)

    def _insist_on_known(self, topics: set[str]) -> None:
        """Ask for the topics that positions belong to until their leaders say that they are gone.

        A broker that is behind, or has been away, may name one that was deleted long ago.

        Raises:
            BrokerError: a leader has said so of one, and another has its name now.
        """
        for topic in topics:
            if self._is_another(topic):
                raise BrokerError(UNKNOWN_TOPIC_ID, "Metadata", f"topic {topic}", MADE_AGAIN)
            known = self._seen.topic_ids.get(topic)
            if known is None:
                continue
            if self._directory.topic_id(topic) != known or known in self._seen.refused_ids:
                self._directory.router.distrust_last()
            self._seen.refused_ids.discard(known)
            self._directory.insist_on(topic, known)
        self._note_ids(topics)

    def _is_another(self, topic: str) -> bool:
        """Whether the topic is not the one that positions belong to; no id says nothing."""
        found, known = self._directory.topic_id(topic), self._seen.topic_ids.get(topic)
        if found is None or known is None:
            return False
        return found != known and known in self._seen.refused_ids

    def _note_ids(self, topics: set[str]) -> None:
        """Positions belong to `topics` as they are now."""
        found = {topic: self._directory.topic_id(topic) for topic in topics}
        self._seen.topic_ids |= {topic: known for topic, known in found.items() if known}

    def _next_scope(self, place: Place, terms: list[Terms], *, is_by_id: bool) -> Scope:
        return self._sessions.at(place).next_scope(terms, is_by_id=is_by_id)

    def _wait_s(self) -> float:
        return self._max_wait_s

    # Answers

    def _first_come(self, timeout_s: float) -> Pending | None:
        """Who has answered, of several who was asked first; None: nobody in time.

        Raises:
            DeadlineExceeded: of whoever was asked first of all nothing has come for
                request.timeout.ms beyond fetch.max.wait.ms, for which it may hold its answer.
        """
        if not self._under_way:
            time.sleep(max(0.0, timeout_s))  # all are resting
            return None
        come, oldest = self._under_way.first_come(timeout_s), self._under_way.oldest
        if come is not oldest and (due := self._under_way.due(oldest)).has_passed:
            self._turn_to(oldest, oldest.since)
            due.check(f"broker {oldest.sent.connection.endpoint}: receive")
        return come

    def _rest_s(self) -> float:
        """How long to wait for an answer: until others are to be asked again.

        Not at all where a rest has ended since: who rested has not been asked.
        """
        left_s = [end.remaining_s for end in self._resting.values()]
        return min([self._until.remaining_s, *left_s])

    def _answer_of(self, one: Pending) -> list[Part]:
        self._turn_to(one, time.monotonic())  # it may have come long ago, and nobody polled
        deadline = Deadline.after(self._config.request_timeout_s)
        arrival = one.sent.connection.begin(deadline, self._memory.take)
        return self._whole_answer(one.sent, arrival, deadline)

    def _turn_to(self, one: Pending, tried_at: float) -> None:
        """From here on this is the one whose answer is read, or that fails."""
        self._memory = self._under_way.take(one, self._memory)
        self._tried_at = tried_at
        self._ended, self._sent, self._asked = one, one.sent, one.partitions

    @property
    def _answered(self) -> Pending:
        """Whose answer is at hand."""
        assert self._ended is not None  # noqa: S101 - `_turn_to` it has come before
        return self._ended

    def _accept(self, answer: FetchResponse, sent: SentFetch) -> list[Part]:
        self._sessions.at(self._answered.place).note_answer(answer)
        return [part for part in super()._accept(answer, sent) if self._is_welcome(part)]

    def _is_welcome(self, part: Part) -> bool:
        progress, data = part
        if progress.topic_partition not in self._held:
            return True
        try:
            end = skimmed(progress, data.records).next_offset if data.records else None
        except CorruptRecords:
            end = None
        # Else it is an error, or somebody would have to be asked first.
        return end is not None and progress.position < end <= data.high_watermark

    def _judge(self, failures: Mapping[TopicPartition, BrokerError], *, is_any_well: bool) -> None:
        by_id = {UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID}
        refused = (item.topic for item, error in failures.items() if error.code in by_id)
        known = self._seen.topic_ids
        self._seen.refused_ids |= {known[topic] for topic in refused if topic in known}
        self._directory.forget(failures.keys() & self._held.keys())
        failures = {item: error for item, error in failures.items() if item not in self._held}
        for_good = (item for item, error in failures.items() if not is_retriable(error))
        self._refused.update(for_good)
        super()._judge(failures, is_any_well=is_any_well)
        asked = self._answered.sent.asked
        self._failing.note_answered(asked, failures)
        for partition, error in failures.items():
            self._rest([asked[partition]], self._config.retry_backoff_s)
            self._failing.note({partition}, error, self._tried_at)

    def _recover(self, error: KafkaProtoError) -> None:
        """The same; others come first from now on. Raises what has lasted for too long."""
        super()._recover(error)
        asked = [
            item for item in self._asked or self._open if item.topic_partition not in self._held
        ]
        if not asked:
            return
        failed = {item.topic_partition for item in asked}
        self.unheard -= failed
        self._failing.note(failed, error, self._tried_at)
        _log.debug("nothing fetched for now: %s", error)
        self._open.sort(key=lambda item: item.topic_partition in failed)
        if self._under_way:  # else whoever tries again has waited
            # Longer than others have waited for this, where nobody was reached.
            took_s = time.monotonic() - self._tried_at if self._ended is None else 0.0
            rest_s = patience.rest_after(min(took_s, patience.SHORT_S))
            self._rest(asked, max(rest_s, self._config.retry_backoff_s))

    def _rest(self, partitions: Collection[RangeProgress], for_s: float) -> None:
        """Do not ask about them again before that."""
        self._resting |= dict.fromkeys(partitions, Deadline.after(for_s))

    def _rest_if_early(self, answered: Pending) -> None:
        """Not every broker holds an answer with nothing in it: it is not asked again at once."""
        early_s = self._max_wait_s - (time.monotonic() - answered.since)
        if early_s > 0:
            self._rest(answered.partitions, min(early_s, self._config.retry_backoff_s))

    def _let_others_first(self, served: set[RangeProgress]) -> None:
        """Who was not asked comes first, then who had nothing, then who had something."""
        asked = set(self._asked)
        self._open.sort(key=lambda item: (item in asked) + (item in served))

    def _nothing_came(self, progress: RangeProgress, bounds: Bounds) -> None:
        """The end of the partition, for now."""
