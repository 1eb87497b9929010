"""What the requests have in common that describe groups of one type each, from KIP-848 on.

A broker that is asked about a group of another type says what it says of one that there is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from pyspark_kafkaproto.cluster.asking import Question, ask, cut
from pyspark_kafkaproto.cluster.groups.committed import GROUPS_PER_REQUEST, named
from pyspark_kafkaproto.cluster.groups.described import DescribedGroup
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion

# A cluster in which groups of the type are switched off answers with the second.
_NOT_OF_THIS_TYPE = (GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION)


def find_described(
    router: Router,
    groups: Collection[str],
    request: Callable[..., Any],
    build: Callable[[Any], DescribedGroup],
) -> dict[str, DescribedGroup | None]:
    """Those of `groups` that are of the type that `request` is about; None for the others.

    Args:
        router: whom to ask.
        groups: their names.
        request: makes it, from `group_ids`.
        build: a group from its part of the answer.
    """
    question = Question(
        f"describe {named(groups)}",
        lambda part: request(group_ids=tuple(part)),
        partial(_read, build),
        cut(GROUPS_PER_REQUEST),
    )
    try:
        return ask(router, question, groups, router.coordinators)
    except UnsupportedVersion as error:  # a broker that knows no such groups has none
        told: dict[str, DescribedGroup | None] = error.usable or {}  # by others
        return dict.fromkeys(groups) | told


def _read(
    build: Callable[[Any], DescribedGroup], answer: Any, part: list[str]
) -> dict[str, DescribedGroup | BrokerError | None]:
    del part
    results: dict[str, DescribedGroup | BrokerError | None] = {}
    for item in answer.groups:
        if item.error_code in _NOT_OF_THIS_TYPE:
            results[item.group_id] = None
        elif item.error_code:
            subject, text = f"group {item.group_id!r}", item.error_message or ""
            error = BrokerError(item.error_code, answer.API_NAME, subject, text)
            results[item.group_id] = error
        else:
            results[item.group_id] = build(item)
    return results


def assigned(assignment: Any) -> frozenset[TopicPartition]:
    """The partitions in an Assignment of ConsumerGroupDescribe or ShareGroupDescribe."""
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )
