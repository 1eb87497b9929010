"""Replicas moved to other brokers, and what is on its way (KIP-455).

A reassignment names the brokers that are to hold a partition, the preferred leader first. The
brokers copy what is missing, and then let go of what is too much; it is under way until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.asking import Question, cut
from pyspark_kafkaproto.cluster.controller import (
    ask_controller,
    ask_controller_once,
    refusal,
    timeout_ms,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import (
    TopicPartition,
    Topology,
    by_topic,
    numbers_by_topic,
    while_news_travels,
)
from pyspark_kafkaproto.error_codes import (
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from pyspark_kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

# A controller changes at most 10,000 records of its own for one request.
PARTITIONS_PER_REQUEST = 1000

_FIRST_WITH_FIXED_FACTOR = 1  # of AlterPartitionReassignments: Kafka 4.1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """What becomes of a partition's replicas, ids of brokers each.

    `replicas` are those there are, the ones that are being copied (`adding`) and the ones that go
    after that (`removing`) included.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Those that are left at its end."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


def replicas_before(
    topology: Topology,
    under_way: Mapping[TopicPartition, Reassignment],
    partitions: Iterable[TopicPartition],
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that each partition has apart from those that are being copied."""
    found = {}
    for item in partitions:
        adding = under_way[item].adding if item in under_way else ()
        present = topology.partition(item).replicas
        found[item] = tuple(broker for broker in present if broker not in adding)
    return found


def reassign_partitions(
    router: Router,
    assignments: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> None:
    """Have partitions held by other brokers, the preferred leader first; None: as before.

    Returns when the controller has taken it up. Asked for again it is no other reassignment.

    Args:
        router: whom to ask through.
        assignments: ids of brokers; None cancels what is under way for the partition.
        allow_replication_factor_change: False has the controller refuse more or fewer replicas
            than there are (KIP-860, Kafka 4.1).

    Raises:
        BrokerError: there is no such partition or broker, or nothing to cancel; `usable` has the
            partitions that were done all the same.
        UnsupportedVersion: the controller cannot be told to keep the number of replicas.
    """

    def make_request(part: list[TopicPartition]) -> AlterPartitionReassignmentsRequest:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms(router),
            allow_replication_factor_change=allow_replication_factor_change,
            topics=tuple(_to_alter(topic, own, assignments) for topic, own in by_topic(part)),
        )

    question = Question(
        "reassign partitions",
        make_request,
        lambda answer, _: _read_altered(answer),
        cut(PARTITIONS_PER_REQUEST),
        least=0 if allow_replication_factor_change else _FIRST_WITH_FIXED_FACTOR,
    )
    ask_controller(router, question, assignments, NO_REASSIGNMENT_IN_PROGRESS)


def cancel_reassignments(
    router: Router,
    partitions: Collection[TopicPartition] | None = None,
    *,
    may_be_over: bool = False,
) -> set[TopicPartition]:
    """Leave replicas where they were before.

    Args:
        router: whom to ask through.
        partitions: which; None: all that are under way, of which those are left out that end
            meanwhile.
        may_be_over: whether those of `partitions` are left out, too, that nothing is under way for.

    Returns:
        Those that were cancelled.

    Raises:
        BrokerError: nothing is under way for one of `partitions`, and that is not left out;
            `usable` has those cancelled.
    """
    may_be_over = may_be_over or partitions is None
    moving = list_reassignments(router, partitions) if may_be_over else {}
    chosen = set(moving if partitions is None else partitions)
    try:
        reassign_partitions(router, dict.fromkeys(chosen))
    except BrokerError as error:
        # Others may have failed, too: the first error tells of one alone.
        is_over = error.code == NO_REASSIGNMENT_IN_PROGRESS and may_be_over
        if not is_over or list_reassignments(router, chosen):
            raise
        done = set(error.usable)
        # An earlier try may have done it: its answer was lost, and the next one found nothing.
        return done | _left_where_they_were(router, moving, moving.keys() - done)
    return chosen


def _left_where_they_were(
    router: Router,
    moving: Mapping[TopicPartition, Reassignment],
    partitions: Collection[TopicPartition],
) -> set[TopicPartition]:
    """Those of `partitions` whose replicas were `moving`, and are those of before."""
    if not partitions:
        return set()
    topics = {item.topic for item in partitions}

    def present() -> dict[TopicPartition, set[int]]:
        topology = router.described(topics)
        found = ((item, topology.find(item)) for item in partitions)
        return {item: set(one.replicas) if one else set() for item, one in found}

    def is_news(replicas: Mapping[TopicPartition, set[int]]) -> bool:
        # Nothing is under way, as the controller says; a broker may have yet to hear of it.
        return all(now != set(moving[item].replicas) for item, now in replicas.items())

    return {
        item
        for item, now in router.believed(present, is_news).items()
        if now == set(moving[item].replicas) - set(moving[item].adding)
    }


def list_reassignments(
    router: Router, partitions: Collection[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """What is under way, of `partitions` (None: of all); those that stay are left out.

    Raises:
        BrokerError: this user may not ask.
    """
    topic_of = ListPartitionReassignmentsRequest.Topic
    if partitions is not None and not partitions:
        return {}
    request = ListPartitionReassignmentsRequest(
        timeout_ms=timeout_ms(router),
        topics=None
        if partitions is None
        else tuple(
            topic_of(name=topic, partition_indexes=numbers)
            for topic, numbers in numbers_by_topic(partitions)
        ),
    )
    return ask_controller_once(router, "list reassignments", request, _read_listed)


def _to_alter(
    topic: str,
    partitions: list[TopicPartition],
    assignments: Mapping[TopicPartition, Sequence[int] | None],
) -> AlterPartitionReassignmentsRequest.Topic:
    part = AlterPartitionReassignmentsRequest.Topic
    return part(
        name=topic,
        partitions=tuple(
            part.Partition(
                partition_index=item.partition,
                replicas=None if (brokers := assignments[item]) is None else tuple(brokers),
            )
            for item in partitions
        ),
    )


def _read_altered(
    answer: AlterPartitionReassignmentsResponse,
) -> dict[TopicPartition, BrokerError | None]:
    if answer.error_code:
        raise refusal(answer.error_code, answer.API_NAME, "the cluster", answer.error_message)
    return {
        partition: _error(item.error_code, partition, item.error_message)
        for topic in answer.responses
        for item in topic.partitions
        for partition in (TopicPartition(topic.name, item.partition_index),)
    }


def _error(code: int, partition: TopicPartition, message: str | None) -> BrokerError | None:
    if not code:
        return None
    text = message or ""
    if code == UNKNOWN_TOPIC_OR_PARTITION:
        text = "there is no such partition, or this user may not see it"
    elif code == NO_REASSIGNMENT_IN_PROGRESS:
        text = "nothing is under way that could be cancelled"
    return while_news_travels(
        BrokerError(code, "AlterPartitionReassignments", f"partition {partition}", text)
    )


def _read_listed(
    answer: ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, Reassignment]:
    # One that has moved on since, or is not there, is no reason to tell nothing of the others.
    if answer.error_code and answer.error_code != UNKNOWN_TOPIC_OR_PARTITION:
        raise refusal(answer.error_code, answer.API_NAME, "the cluster", answer.error_message)
    return {
        TopicPartition(topic.name, item.partition_index): Reassignment(
            tuple(item.replicas), tuple(item.adding_replicas), tuple(item.removing_replicas)
        )
        for topic in answer.topics
        for item in topic.partitions
    }
