"""The topic of decisions: made where it is missing, refused where it could not keep them.

One partition, compacted. What stands in it is the business of `decisions`.
"""

from __future__ import annotations

import logging
from typing import Final

from pyspark_kafkaproto.cluster import NewTopic, Router, Topic
from pyspark_kafkaproto.cluster.configs import ConfigResource, describe_configs
from pyspark_kafkaproto.cluster.topics import create_topics
from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICATION_FACTOR,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.net import ClientConfig

_log = logging.getLogger(__name__)

_REPLICAS: Final = 3
MOST_BYTES: Final = 4 << 20  # of a decision, which names each task of its batch
# Small segments: what compaction has not reached yet is read by everybody who comes.
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MOST_BYTES),
}
# A decision that one broker alone has, and loses, was carried out in part: brokers are as careful
# with their own log of transactions (transaction.state.log.min.isr).
_SAFE_CONFIGS: Final = {"min.insync.replicas": "2"}

_AUTHORIZATION_FAILED: Final = frozenset({TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})
_UNLIMITED: Final = "-1"

# Topics whose configuration was looked at: brokers keep what is decided there.
_keeping: set[tuple[ClientConfig, str]] = set()


def ensure_topic(router: Router, name: str) -> None:
    """Make the topic where it is missing.

    Raises:
        BrokerError: it is missing and this user may not make it.
        ConfigError: it is there, but could not keep decisions.
    """
    try:
        count = len(describe_topic(router, name).partitions)
    except BrokerError as error:
        if error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        make_topic(router, name)
        return
    if count != 1:
        raise ConfigError("decisionTopic", name, f"it has {count} partitions, not one")
    if (router.config, name) not in _keeping:
        _check_keeps(router, name)
        _keeping.add((router.config, name))


def describe_topic(router: Router, name: str) -> Topic:
    """What it is now; asked for as long as any other call."""
    deadline = router.deadline()

    def attempt() -> Topic:
        return router.topology({name}, deadline).topic(name)

    return router.retrying("find the decision topic", attempt, deadline)


def make_topic(router: Router, name: str) -> None:
    """Make it, unless somebody else just has.

    Raises:
        BrokerError: this user may not, or a broker has just gone.
    """
    deadline = router.deadline()
    brokers = len(router.topology((), deadline).brokers)
    replicas = min(_REPLICAS, brokers)
    safe = _SAFE_CONFIGS if replicas == _REPLICAS else {}
    topic = NewTopic(name, 1, replicas, _CONFIGS | safe)
    try:
        create_topics(router, [topic])
    except BrokerError as error:
        if error.code == TOPIC_ALREADY_EXISTS:
            return
        advice = "decisions are kept there: make it (one partition, cleanup.policy=compact), or "
        if error.code in _AUTHORIZATION_FAILED:
            advice += "give this user the right CREATE on it"
        elif error.code == INVALID_REPLICATION_FACTOR:  # with fewer it would stay less safe
            advice += f"try again once {replicas} brokers are there, as there were a moment ago"
        else:
            raise
        raise BrokerError(error.code, "CreateTopics", f"topic {name!r}", advice) from error


def _check_keeps(router: Router, topic: str) -> None:
    """Refuse a topic that brokers delete decisions from; whoever may not see that trusts it."""
    resource = ConfigResource("topic", topic)
    try:
        found = describe_configs(router, [resource])[resource]
    except BrokerError as error:
        if error.code not in _AUTHORIZATION_FAILED:
            raise
        _log.info("whether brokers keep all decisions is not known: %s", error)
        return
    values = {name: entry.value or "" for name, entry in found.items()}
    limits = [
        f"{name}={values[name]}"
        for name in ("retention.ms", "retention.bytes")
        if values.get(name, _UNLIMITED) != _UNLIMITED
    ]
    policy = values.get("cleanup.policy", "")
    if "delete" in policy.split(",") and limits:
        raise ConfigError(
            "decisionTopic",
            topic,
            f"brokers delete decisions from it (cleanup.policy={policy}, {', '.join(limits)}), "
            "and a batch that is repeated after that is written twice: "
            f"kafkaproto configs alter topic {topic} --set cleanup.policy=compact",
        )
