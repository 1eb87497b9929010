"""What has a configuration in the cluster, by name (ListConfigResources, KIP-1142).

The request was there before, for the names of client-metrics alone (ListClientMetricsResources,
KIP-714): its version 0 asks for them still, and whoever needs no more asks so.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from pyspark_kafkaproto.cluster.asking import Question, ask
from pyspark_kafkaproto.cluster.configs import TYPE_NUMBERS, ConfigResource, named_resource
from pyspark_kafkaproto.cluster.controller import controller_places, needing_kraft, refusal
from pyspark_kafkaproto.cluster.given import checked_words
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.errors import UnsupportedVersion
from pyspark_kafkaproto.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_CLIENT_METRICS = "client-metrics"
_FIRST_WITH_TYPES = 1  # of ListConfigResources: Kafka 4.1
_OLDER = f"brokers before Kafka 4.1 list resources of the type {_CLIENT_METRICS} alone"


def list_config_resources(
    router: Router, types: Collection[str] | None = None
) -> list[ConfigResource]:
    """The resources of `types` (None: of all) that there are, sorted.

    Raises:
        BrokerError: this user may not see them.
        ConfigError: there is no such type.
        UnsupportedVersion: brokers before Kafka 4.1 list those of client-metrics alone, and those
            with ZooKeeper none.
    """
    chosen = None if types is None else set(checked_words("type", types, tuple(TYPE_NUMBERS)))
    if chosen == {_CLIENT_METRICS}:
        with needing_kraft(f"configuration of {_CLIENT_METRICS}"):
            return _listed(router, ListConfigResourcesRequest(), most=_FIRST_WITH_TYPES - 1)
    if chosen is not None and not chosen:
        return []  # of no type, which brokers would take for all
    numbers = (TYPE_NUMBERS[name] for name in chosen or ())
    request = ListConfigResourcesRequest(resource_types=tuple(sorted(numbers)))
    try:
        return _listed(router, request, least=_FIRST_WITH_TYPES)
    except UnsupportedVersion as error:
        raise UnsupportedVersion(f"{error}: {_OLDER}") from error


def _listed(
    router: Router, request: ListConfigResourcesRequest, *, least: int = 0, most: int | None = None
) -> list[ConfigResource]:
    def read(answer: ListConfigResourcesResponse) -> list[ConfigResource]:
        if answer.error_code:
            raise refusal(answer.error_code, answer.API_NAME, "the cluster", None)
        found = answer.config_resources
        return sorted(named_resource(item.resource_type, item.resource_name) for item in found)

    what = "list config resources"
    question: Question[str, list[ConfigResource]] = Question(
        what, lambda _: request, lambda answer, _: {what: read(answer)}, most=most, least=least
    )
    return ask(router, question, [what], partial(controller_places, router))[what]
