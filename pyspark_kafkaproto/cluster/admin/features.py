"""Features of a cluster: which levels its brokers know, and which is in force.

Protocol: KIP-584 (features, UpdateFeatures), KIP-1022 (those beyond metadata.version).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.cluster.asking import Question, nothing_done_yet
from pyspark_kafkaproto.cluster.controller import ask_controller, refusal, timeout_ms
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_WITH_TYPES = 1  # of UpdateFeatures: Kafka 3.3


class Feature(NamedTuple):
    """A feature: the levels that a broker knows, and the one in force (0: none)."""

    min_supported: int
    max_supported: int
    finalized: int


@dataclass(frozen=True, slots=True)
class Features:
    """All features by name; `epoch` grows with each change, None where a broker tells none."""

    epoch: int | None
    by_name: Mapping[str, Feature]


class Direction(Enum):
    """Which way a level may go; the numbers are the protocol's.

    An unsafe downgrade may lose metadata that the lower level does not know.
    """

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def describe_features(router: Router) -> Features:
    """What a broker knows, asked anew, and what is in force in the cluster."""
    deadline = router.deadline()
    request = ApiVersionsRequest(
        client_software_name="pyspark-kafkaproto", client_software_version=__version__
    )

    def attempt() -> Features:
        return _read_described(router.ask_any(request, deadline))

    return router.retrying("describe features", attempt, deadline)


def update_features(
    router: Router,
    levels: Mapping[str, int],
    direction: Direction = Direction.UPGRADE,
    *,
    validate_only: bool = False,
) -> None:
    """Put levels of features in force: all of them, or none.

    Controllers before Kafka 4.0 put in force what they do not refuse: several are asked about
    before.

    Args:
        router: whom to ask through.
        levels: by feature; 0 takes one out of force.
        direction: whether levels may go down.
        validate_only: whether to ask only if it could be done.

    Raises:
        BrokerError: a level is not known to all brokers, or goes the other way, ….
        UnsupportedVersion: brokers before Kafka 3.3 cannot be asked so.
    """
    if len(levels) > 1 and not validate_only:
        with nothing_done_yet():
            update_features(router, levels, direction, validate_only=True)
    part = UpdateFeaturesRequest.FeatureUpdate

    def make_request(names: list[str]) -> UpdateFeaturesRequest:
        return UpdateFeaturesRequest(
            timeout_ms=timeout_ms(router),
            feature_updates=tuple(
                part(
                    feature=name,
                    max_version_level=levels[name],
                    upgrade_type=direction.value,
                )
                for name in names
            ),
            validate_only=validate_only,
        )

    question = Question("update features", make_request, _read_updated, least=_FIRST_WITH_TYPES)
    ask_controller(router, question, levels)


def _read_described(answer: ApiVersionsResponse) -> Features:
    if answer.error_code:
        raise BrokerError(answer.error_code, answer.API_NAME, "features")
    epoch = answer.finalized_features_epoch
    known = answer.finalized_features if epoch >= 0 else ()
    finalized = {item.name: item.max_version_level for item in known}
    supported = {
        item.name: (item.min_version, item.max_version) for item in answer.supported_features
    }
    return Features(
        None if epoch < 0 else epoch,
        {
            name: Feature(*supported.get(name, (0, 0)), finalized.get(name, 0))
            for name in sorted(supported.keys() | finalized.keys())
        },
    )


def _read_updated(
    answer: UpdateFeaturesResponse, names: list[str]
) -> dict[str, BrokerError | None]:
    if answer.error_code:  # since version 2 what is wrong with any of them, by its text
        subject = f"features {', '.join(names)}"
        raise refusal(answer.error_code, answer.API_NAME, subject, answer.error_message)
    results: dict[str, BrokerError | None] = dict.fromkeys(names)
    for item in answer.results:
        if item.error_code:
            text = item.error_message or ""
            subject = f"feature {item.feature!r}"
            results[item.feature] = BrokerError(item.error_code, answer.API_NAME, subject, text)
    return results
