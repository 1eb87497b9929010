"""A fake coordinator that keeps what groups commit."""

from __future__ import annotations

import threading

from pyspark_kafkaproto.messages.offset_commit import OffsetCommitResponse
from pyspark_kafkaproto.messages.offset_delete import OffsetDeleteResponse
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchResponse
from tests.fake_broker import name_of
from tests.unit.cluster.fake_groups import describing

_COORDINATOR_NOT_AVAILABLE = 15
_UNSTABLE_OFFSET_COMMIT, _UNKNOWN_TOPIC_ID = 88, 100


class FakeCoordinator:
    """Answers OffsetFetch, OffsetCommit and OffsetDelete of every group from `offsets`.

    `offsets`: group to {(topic, partition): (offset, metadata)}; `epochs`: of all groups, the last
    offset that was committed, and the leader epoch with it, by (topic, partition).
    """

    def __init__(self, brokers, **offsets):
        self._brokers = brokers
        self.offsets = {group: dict(own) for group, own in offsets.items()}
        self.epochs = {}
        brokers.on("OffsetFetch", self.fetch)
        brokers.on("OffsetCommit", self.commit)
        brokers.on("OffsetDelete", self._delete)
        describing(brokers)

    def fetch(self, call):
        """The answer to an OffsetFetch, which says what is noted in `offsets`."""
        part = OffsetFetchResponse.Group
        if call.header.api_version < 8:
            return OffsetFetchResponse(topics=self._topics(call.request, OffsetFetchResponse))
        return OffsetFetchResponse(
            groups=tuple(
                part(group_id=asked.group_id, topics=self._topics(asked, part))
                for asked in call.request.groups
            )
        )

    def _topics(self, asked, part):
        own = self.offsets.get(asked.group_id, {})
        wanted = own if asked.topics is None else _keys(asked.topics, "partition_indexes")
        return tuple(
            part.Topic(
                name=topic,
                partitions=(
                    part.Topic.Partition(
                        partition_index=number,
                        committed_offset=own.get((topic, number), (-1, ""))[0],
                        committed_leader_epoch=self._epoch((topic, number), own),
                        metadata=own.get((topic, number), (-1, ""))[1],
                    ),
                ),
            )
            for topic, number in wanted
        )

    def _epoch(self, item, own):
        offset, epoch = self.epochs.get(item, (-1, -1))
        return epoch if own.get(item, (-1, ""))[0] == offset else -1

    def commit(self, call):
        """The answer to an OffsetCommit, which is noted there; by an id that is gone it is not."""
        own = self.offsets.setdefault(call.request.group_id, {})
        names = {topic.topic_id: name for name, topic in self._brokers.topics.items()}

        def note(topic, item):
            name = topic.name or names.get(topic.topic_id)
            if name is None:
                return _UNKNOWN_TOPIC_ID
            at = name, item.partition_index
            own[at] = item.committed_offset, item.committed_metadata
            self.epochs[at] = item.committed_offset, item.committed_leader_epoch
            return 0

        return _each(OffsetCommitResponse, call.request.topics, note)

    def _delete(self, call):
        for topic in call.request.topics:
            for item in topic.partitions:
                self.offsets[call.request.group_id].pop((topic.name, item.partition_index), None)
        return _all_well(OffsetDeleteResponse, call.request.topics)


def _keys(topics, field):
    return [(topic.name, number) for topic in topics for number in getattr(topic, field)]


def committing(code):
    """An OffsetCommit answer with an error for all that was asked."""
    return lambda call: _each(OffsetCommitResponse, call.request.topics, lambda *_: code)


def committing_each(outcome):
    """An OffsetCommit answer with what `outcome` says of a topic's name and partition's request."""

    def outcome_of(topic, item):
        return outcome(name_of(topic), item)

    return lambda call: _each(OffsetCommitResponse, call.request.topics, outcome_of)


def _all_well(response, topics):
    return _each(response, topics, lambda *_: 0)


def _each(response, topics, outcome):
    part = response.Topic
    return response(
        topics=tuple(
            part(
                **{name: getattr(topic, name) for name in ("name", *_ids(topic))},
                partitions=tuple(
                    part.Partition(
                        partition_index=item.partition_index,
                        error_code=outcome(topic, item),
                    )
                    for item in topic.partitions
                ),
            )
            for topic in topics
        )
    )


def _ids(topic):
    return ("topic_id",) if hasattr(topic, "topic_id") else ()


def fetch_refused(code):
    """An OffsetFetch answer with an error for each group."""
    part = OffsetFetchResponse.Group
    return lambda call: OffsetFetchResponse(
        groups=tuple(
            part(group_id=asked.group_id, error_code=code) for asked in call.request.groups
        )
    )


def unstable(call):
    """Offsets that an open transaction holds."""
    return fetch_refused(_UNSTABLE_OFFSET_COMMIT)(call)


def held_up(brokers, *answers):
    """Has commits tried again until they are let go, so that those given meanwhile go together."""
    let_go = threading.Event()
    left = list(answers)

    def answer(call):
        if not let_go.is_set():
            return committing(_COORDINATOR_NOT_AVAILABLE)(call)
        return (left.pop(0) if len(left) > 1 else left[0])(call)

    brokers.on("OffsetCommit", answer)
    return let_go
