"""A fake share group by Kafka's rules: its coordinator at node 1, and leaders of its partitions.

A leader knows members by their sessions: each request has the next epoch, acknowledgements are only
taken in one, the last epoch gives back what was acquired, as does the end of the connection.
Of a partition all acknowledgements of a request are taken, or none.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from pyspark_kafkaproto.messages.share_acknowledge import ShareAcknowledgeResponse
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.messages.share_group_heartbeat import (
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.fake_sessions import with_values

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_ID, NOT_LEADER, UNKNOWN_MEMBER_ID, INVALID_REQUEST = 100, 6, 25, 42
FENCED_MEMBER_EPOCH, INVALID_RECORD_STATE = 110, 121
NOT_FOUND, INVALID_EPOCH = 122, 123
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
RECORD_LIMIT = 1
BEAT_MS = 10
LOCK_MS = 30_000
VERSIONS = {"ShareGroupHeartbeat": (1, 1), "ShareFetch": (1, 2), "ShareAcknowledge": (1, 2)}

Fetched = ShareFetchResponse.Topic.Partition


@dataclass(slots=True)
class FakeOffset:
    """One offset of a share partition."""

    state: str = "available"  # or acquired, done
    member: str = ""
    count: int = 0


@dataclass(slots=True)
class FakeShareSession:
    """What a leader knows of a member."""

    connection: int
    epoch: int = 1
    asked: set = field(default_factory=set)  # (topic id, number)


@dataclass(slots=True)
class FakeShares:
    """The group.

    Attributes:
        members: epochs by member id.
        heard: (member id, epoch, topics or None, rack) of each heartbeat.
        offsets: {(topic, number): {offset: FakeOffset}} of what was ever given out.
        said: (topic, number, first, last, types) of each acknowledgement that was taken.
        sessions: {(node, member id): FakeShareSession}.
        tells: whether who does not lead says who does.
    """

    brokers: object
    members: dict = field(default_factory=dict)
    heard: list = field(default_factory=list)
    topics: dict = field(default_factory=dict)
    offsets: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(FakeOffset)))
    said: list = field(default_factory=list)
    sessions: dict = field(default_factory=dict)
    epoch: int = 0
    tells: bool = True
    lock_ms: int = LOCK_MS

    def __post_init__(self):
        self.brokers.versions |= VERSIONS
        self.brokers.on("ShareGroupHeartbeat", self.beat)
        self.brokers.on("ShareFetch", self.fetch)
        self.brokers.on("ShareAcknowledge", self.acknowledge)
        self.brokers.on_end = self._end_with_connection

    # The coordinator

    def beat(self, call):
        """The answer to a heartbeat."""
        request = call.request
        topics = request.subscribed_topic_names
        known = self.members.get(request.member_id)
        self.heard.append((request.member_id, request.member_epoch, topics, request.rack_id))
        if request.member_epoch == -1:
            self.members.pop(request.member_id, None)
            return ShareGroupHeartbeatResponse(member_epoch=-1)
        if request.member_epoch == 0:
            assert topics
            self.epoch += 1
            self.members[request.member_id] = self.epoch
            self.topics[request.member_id] = topics
        elif known is None:
            return beat_refused(UNKNOWN_MEMBER_ID)
        elif request.member_epoch != known:
            return beat_refused(FENCED_MEMBER_EPOCH)
        told = None
        if topics is not None:
            told = ShareGroupHeartbeatResponse.Assignment(
                topic_partitions=tuple(
                    TopicPartitions(
                        topic_id=self.brokers.topics[name].topic_id,
                        partitions=tuple(range(len(self.brokers.topics[name].leaders))),
                    )
                    for name in topics
                    if name in self.brokers.topics
                )
            )
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.members[request.member_id],
            heartbeat_interval_ms=BEAT_MS,
            assignment=told,
        )

    # Leaders

    def fetch(self, call):
        """The answer to a ShareFetch."""
        request = call.request
        has_said = any(part.acknowledgement_batches for _, part in _parts(request))
        code = self._enter(call)
        if not code and request.share_session_epoch == 0 and has_said:
            code = INVALID_REQUEST
        if code:
            return ShareFetchResponse(error_code=code)
        session = self.sessions[call.node_id, request.member_id]
        if not all(map(self._name, self._named(session, request))):
            return ShareFetchResponse(error_code=UNKNOWN_SERVER_ERROR)  # as brokers of 4.3 do
        told = {
            (topic.topic_id, part.partition_index): self._take(call, topic.topic_id, part)
            for topic, part in _parts(request)
            if part.acknowledgement_batches
        }
        session.asked |= {(topic.topic_id, part.partition_index) for topic, part in _parts(request)}
        session.asked -= {
            (topic.topic_id, number)
            for topic in request.forgotten_topics_data
            for number in topic.partitions
        }
        if not told:
            self.brokers.hold(lambda: self._has_news(call, session), request.max_wait_ms / 1000)
        left = request.max_records
        found = {}
        for key in sorted(session.asked | told.keys()):
            is_few = request.share_acquire_mode == RECORD_LIMIT
            part = _part(key)
            if key in session.asked:
                part = self._fetched(call, key, left, is_few=is_few)
            left -= sum(item.last_offset - item.first_offset + 1 for item in part.acquired_records)
            if part.error_code or part.acquired_records or key in told:
                found[key] = with_values(part, acknowledge_error_code=told.get(key, 0))
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self.lock_ms,
            responses=tuple(
                ShareFetchResponse.Topic(topic_id=topic_id, partitions=(part,))
                for (topic_id, _), part in found.items()
            ),
            node_endpoints=self._endpoints(ShareFetchResponse) if self.tells else (),
        )

    def acknowledge(self, call):
        """The answer to a ShareAcknowledge."""
        request = call.request
        is_last = request.share_session_epoch == -1
        code = INVALID_EPOCH if request.share_session_epoch == 0 else self._enter(call)
        if code:
            return ShareAcknowledgeResponse(error_code=code)
        kind = ShareAcknowledgeResponse.Topic
        responses = tuple(
            kind(
                topic_id=topic.topic_id,
                partitions=(
                    kind.Partition(
                        partition_index=part.partition_index,
                        error_code=self._take(call, topic.topic_id, part),
                    ),
                ),
            )
            for topic, part in _parts(request)
        )
        if is_last:
            self.end_session(call.node_id, request.member_id)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=self.lock_ms, responses=responses
        )

    def _enter(self, call):
        """The error of a request's epoch, 0 for none."""
        request = call.request
        key = call.node_id, request.member_id
        if request.share_session_epoch == 0:
            self.end_session(*key)
            self.sessions[key] = FakeShareSession(call.connection)
            return 0
        session = self.sessions.get(key)
        if session is None:
            return NOT_FOUND
        if call.connection < session.connection:
            return INVALID_EPOCH  # it was sent before the connection of an earlier session ended
        assert call.connection == session.connection, "a session has one connection"
        if request.share_session_epoch == -1:
            return 0
        if request.share_session_epoch != session.epoch:
            return INVALID_EPOCH
        session.epoch += 1
        return 0

    def _take(self, call, topic_id, part):
        """Acknowledgements of one partition: all of them, or none and why."""
        name, number = self._name(topic_id), part.partition_index
        if self.brokers.topics[name].leaders[number] != call.node_id:
            return NOT_LEADER
        offsets, changes = self.offsets[name, number], []
        before = -1
        for batch in part.acknowledgement_batches:
            assert before < batch.first_offset <= batch.last_offset, "in order, and none twice"
            before = batch.last_offset
            count = batch.last_offset - batch.first_offset + 1
            assert len(batch.acknowledge_types) in (1, count)
            types = batch.acknowledge_types * (1 if len(batch.acknowledge_types) > 1 else count)
            assert call.api == "ShareAcknowledge" or RENEW not in types
            assert RENEW not in types or call.request.is_renew_ack
            changes += zip(range(batch.first_offset, before + 1), types, strict=True)
        for offset, _ in changes:
            found = offsets[offset]
            if (found.state, found.member) != ("acquired", call.request.member_id):
                return INVALID_RECORD_STATE
        for offset, kind in changes:
            if kind != RENEW:
                offsets[offset].state = "available" if kind == RELEASE else "done"
            self.said.append((name, number, offset, kind))
        return 0

    def _has_news(self, call, session):
        return any(self._free(call, key) for key in session.asked)

    def _free(self, call, key):
        """Offsets that can be given out, in runs that were delivered equally often."""
        name, number = self._name(key[0]), key[1]
        if name is None or self.brokers.topics[name].leaders[number] != call.node_id:
            return [()]  # an error is news
        runs = []
        log, begin = self.brokers.logs[name, number], 0
        for batch in log.batches:
            for offset in range(begin, batch.next_offset):
                found = self.offsets[name, number][offset]
                if found.state != "available":
                    continue
                last = runs[-1] if runs else None
                is_next = last and last[-1] == offset - 1 and offset != begin
                if is_next and self.offsets[name, number][offset - 1].count == found.count:
                    last.append(offset)
                else:
                    runs.append([offset])
            begin = batch.next_offset
        return runs

    def _fetched(self, call, key, most, *, is_few):
        name, number = self._name(key[0]), key[1]
        if name is None:
            return _part(key, UNKNOWN_TOPIC_ID)
        topic = self.brokers.topics[name]
        leader = topic.leaders[number]
        if leader != call.node_id:
            place = Fetched.CurrentLeader(leader_id=leader, leader_epoch=topic.epochs[number])
            return _part(key, NOT_LEADER, **({"current_leader": place} if self.tells else {}))
        acquired, given = [], 0
        for run in self._free(call, key):
            if given >= most:
                break
            if is_few:
                run = run[: most - given]  # noqa: PLW2901
            given += len(run)
            for offset in run:
                found = self.offsets[name, number][offset]
                found.state, found.member = "acquired", call.request.member_id
                found.count += 1
            acquired.append(
                Fetched.AcquiredRecords(
                    first_offset=run[0],
                    last_offset=run[-1],
                    delivery_count=self.offsets[name, number][run[0]].count,
                )
            )
        if not acquired:
            return _part(key)
        records = self._records(name, number, acquired)
        return _part(key, acquired_records=tuple(acquired), records=records)

    def _records(self, name, number, acquired):
        """Whole batches, from the one that has the first offset to the one that has the last."""
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        log, begin, found = self.brokers.logs[name, number], 0, []
        for batch in log.batches:
            if batch.next_offset > first and begin <= last:
                found.append(batch.data)
            begin = batch.next_offset
        return b"".join(found)

    @staticmethod
    def _named(session, request):
        """The ids of all topics that a request is about."""
        gone = {topic.topic_id for topic in request.forgotten_topics_data}
        asked = {topic_id for topic_id, _ in session.asked} - gone
        return asked | {topic.topic_id for topic in request.topics}

    def _name(self, topic_id):
        known = self.brokers.topics.items()
        return next((name for name, topic in known if topic.topic_id == topic_id), None)

    def _endpoints(self, kind):
        return tuple(
            kind.NodeEndpoint(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in self.brokers.places().items()
        )

    # What befalls members

    def end_session(self, node_id, member_id):
        """What was acquired there goes back."""
        if self.sessions.pop((node_id, member_id), None) is None:
            return
        for (name, number), offsets in self.offsets.items():
            if self.brokers.topics[name].leaders[number] == node_id:
                self._give_back(offsets, member_id)

    def _end_with_connection(self, node_id, connection):
        for place, session in list(self.sessions.items()):
            if place[0] == node_id and session.connection == connection:
                self.end_session(*place)

    def end_sessions(self):
        """All of them."""
        for key in list(self.sessions):
            self.end_session(*key)

    def move(self, name, number, node_id):
        """Elect another leader, which knows nothing of what was acquired."""
        self.brokers.topics[name].move(number, node_id)
        for offset in self.offsets[name, number].values():
            offset.state = "available" if offset.state == "acquired" else offset.state

    def expire(self):
        """All locks run out."""
        for offsets in self.offsets.values():
            for member_id in self.members:
                self._give_back(offsets, member_id)

    def done(self):
        """(topic, number, offset) of what nobody is given any more."""
        with self.brokers.at_once():
            return {
                (*place, offset)
                for place, offsets in self.offsets.items()
                for offset, found in offsets.items()
                if found.state == "done"
            }

    @staticmethod
    def _give_back(offsets, member_id):
        for offset in offsets.values():
            if (offset.state, offset.member) == ("acquired", member_id):
                offset.state = "available"


def beat_refused(code, text="said by the fake"):
    """The answer to a heartbeat that is not taken."""
    return ShareGroupHeartbeatResponse(error_code=code, error_message=text)


def _part(key, code=0, **fields):
    return Fetched(partition_index=key[1], error_code=code, **fields)


def _parts(request):
    return [(topic, part) for topic in request.topics for part in topic.partitions]
