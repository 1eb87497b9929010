"""Leaders elected anew: the preferred ones, or whoever is left (KIP-183, KIP-460)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from pyspark_kafkaproto.cluster.asking import Question, ask, cut
from pyspark_kafkaproto.cluster.changing import Tries
from pyspark_kafkaproto.cluster.controller import (
    ask_controller_once,
    controller_places,
    timeout_ms,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import (
    TopicPartition,
    Topology,
    numbers_by_topic,
    while_news_travels,
)
from pyspark_kafkaproto.error_codes import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

# A controller changes at most 10,000 records of its own for one request.
_PARTITIONS_PER_REQUEST = 1000
_FIRST_WITH_TYPES = 1  # of ElectLeaders: Kafka 2.4
_PREFERRED, _UNCLEAN = 0, 1
_WHAT = "elect leaders"
_ADVICE = {
    UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition, or this user may not see it",
    PREFERRED_LEADER_NOT_AVAILABLE: "its preferred leader, the first of its replicas, is away or "
    "not in sync",
    ELIGIBLE_LEADERS_NOT_AVAILABLE: "none of its replicas is there",
}


def elect_leaders(
    router: Router,
    partitions: Collection[TopicPartition] | None = None,
    *,
    unclean: bool = False,
) -> dict[TopicPartition, bool]:
    """Have the preferred leader lead, the first of a partition's replicas.

    Args:
        router: whom to ask through.
        partitions: which; None: all there are.
        unclean: whether to elect, for partitions without a leader, one of the replicas that are
            there, though it lacks records: those are lost.

    Returns:
        Whether there was an election: False where it was not needed.

    Raises:
        BrokerError: there is no such partition, or nobody who could lead it; `usable` has what
            would be returned of the others.
    """
    if partitions is not None and not partitions:
        return {}
    topology = router.described(None if partitions is None else {item.topic for item in partitions})
    if partitions is None:
        known = (name for name, topic in topology.topics.items() if not topic.error_code)
        partitions = topology.partitions_of(known)
    wanting = set(_wanting(topology, partitions, unclean=unclean))
    tries: Tries[TopicPartition] = Tries()

    def make_request(part: list[TopicPartition]) -> ElectLeadersRequest:
        tries.send(wanting.intersection(part))
        return ElectLeadersRequest(
            election_type=_UNCLEAN if unclean else _PREFERRED,
            topic_partitions=tuple(
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in numbers_by_topic(part)
            ),
            timeout_ms=timeout_ms(router),
        )

    least = _FIRST_WITH_TYPES if unclean else 0
    if not partitions:  # that this user may see; whether it may elect, the controller knows
        none = make_request([])
        ask_controller_once(router, _WHAT, none, lambda answer: _read(answer, tries), least)
        return {}
    question = Question(
        _WHAT,
        make_request,
        lambda answer, _: _read(answer, tries),
        cut(_PARTITIONS_PER_REQUEST),
        least=least,
        note_unsent=tries.note_unsent,
    )
    try:
        return ask(router, question, partitions, partial(controller_places, router))
    except KafkaProtoError as error:
        tries.tell_doubt(error, partitions)
        raise


def _wanting(
    topology: Topology, partitions: Collection[TopicPartition], *, unclean: bool
) -> Iterator[TopicPartition]:
    """Those that an election is needed for, as far as they may be seen."""
    for item in partitions:
        found = topology.find(item)
        if found and found.replicas:
            leads = found.leader_id >= 0 if unclean else found.leader_id == found.replicas[0]
            if not leads:
                yield item


def _read(
    answer: ElectLeadersResponse, tries: Tries[TopicPartition]
) -> dict[TopicPartition, bool | BrokerError]:
    """What became of each.

    tries: of those that needed an election. Needs one none any more that was asked for before, that
    has come through, though its answer was lost.
    """
    if answer.error_code:
        raise BrokerError(answer.error_code, answer.API_NAME, "the cluster")
    results: dict[TopicPartition, bool | BrokerError] = {}
    for topic in answer.replica_election_results:
        for item in topic.partition_result:
            partition = TopicPartition(topic.topic, item.partition_id)
            tries.note_answer(partition, item.error_code)
            is_needed = item.error_code != ELECTION_NOT_NEEDED
            results[partition] = is_needed or tries.may_be_done(partition)
            if item.error_code not in (0, ELECTION_NOT_NEEDED):
                text = _ADVICE.get(item.error_code, item.error_message or "")
                subject = f"partition {partition}"
                error = BrokerError(item.error_code, answer.API_NAME, subject, text)
                results[partition] = while_news_travels(error)
    return results
