"""Features of a cluster: which levels its brokers know, and which is in force.

Protocol: KIP-584 (features, UpdateFeatures), KIP-1022 (those beyond metadata.version).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.cluster.asking import Question, nothing_done_yet
from pyspark_kafkaproto.cluster.controller import ask_controller, refusal, timeout_ms
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import INVALID_UPDATE_VERSION
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_WITH_TYPES = 1  # of UpdateFeatures: Kafka 3.3

METADATA_VERSION: Final = "metadata.version"
# From level 1 on; those that a release is still to be made with may change until then.
_RELEASES: Final = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
    *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    *("4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2"),
)


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


def release_of(name: str, level: int) -> str | None:
    """Kafka's word for a level, `4.1-IV1`; None where it has none, or a newer one than these."""
    is_known = name == METADATA_VERSION and 1 <= level <= len(_RELEASES)
    return _RELEASES[level - 1] if is_known else None


def level_of_release(name: str, word: str) -> int | None:
    """The level that a word stands for; `4.1` and `4.1.2` are the last one of that release."""
    found = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?(-IV\d+)?", word, re.ASCII)
    if name != METADATA_VERSION or found is None:
        return None
    release, step = found[1], found[2] or "-"
    levels = enumerate(_RELEASES, 1)
    return max(
        (
            level
            for level, own in levels
            if own == release + step or (step == "-" and own.startswith(release + step))
        ),
        default=None,
    )


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
        BrokerError: a level is not known to all brokers, or goes the other way, …; or there is no
            such feature.
        UnsupportedVersion: brokers before Kafka 3.3 cannot be asked so.
    """
    _check_known(router, {name for name, level in levels.items() if not level})
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

    question = Question(
        "update features",
        make_request,
        _read_updated,
        least=_FIRST_WITH_TYPES,
        is_trial=validate_only,
    )
    ask_controller(router, question, levels)


def _check_known(router: Router, out_of_force: set[str]) -> None:
    """Refuse what there is not: to controllers before Kafka 4.0 it is at level 0 already."""
    if not out_of_force:
        return
    if unknown := sorted(out_of_force - describe_features(router).by_name.keys()):
        raise BrokerError(
            INVALID_UPDATE_VERSION,
            UpdateFeaturesRequest.API_NAME,
            f"features {', '.join(unknown)}",
            "there is no such feature: kafkaproto features list shows those that there are",
        )


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
