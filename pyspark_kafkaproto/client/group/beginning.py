"""Where a member's partitions begin, and which of them nobody can begin with yet.

Knows nothing of rows, nor of what is read already: `reading` moves positions on from here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from pyspark_kafkaproto.client.group import patience
from pyspark_kafkaproto.client.group.reset import reset_timestamp
from pyspark_kafkaproto.cluster import CommittedOffset, Router, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember, fetch_offsets
from pyspark_kafkaproto.cluster.offsets import list_bounds
from pyspark_kafkaproto.error_codes import OFFSET_OUT_OF_RANGE
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from pyspark_kafkaproto.net.retry import is_retriable

_log = logging.getLogger(__name__)


def starting_positions(
    router: Router,
    config: ConsumerConfig,
    partitions: Collection[TopicPartition],
    *,
    has_others: bool = False,
    patience_s: float | None = None,
    member: GroupMember | None = None,
    level: int = logging.WARNING,
) -> dict[TopicPartition, CommittedOffset]:
    """Where the group goes on: what it has committed, else what auto.offset.reset says.

    A partition that it has committed nothing for is left out where auto.offset.reset is none, and
    one that nobody leads, or whose leader does not answer, where there are others: those do not
    wait for it.

    Args:
        router: whom to ask through.
        config: the member's.
        partitions: where to begin.
        has_others: whether others are read already.
        patience_s: for how long others wait for each leader; None: as for the first look.
        member: who asks, in the protocol of KIP-848 alone.
        level: at which it is logged whose leader does not answer.

    Raises:
        BrokerError: UNSTABLE_OFFSET_COMMIT, without a second try, where a transaction is about to
            commit some. UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH where the coordinator knows
            `member` not at all, or in another epoch.
    """
    group = config.group_id
    told = fetch_offsets(router, {group}, partitions, unstable_s=0, member=member)
    committed = told[group]
    missing = {item for item in partitions if item not in committed}
    found: dict[TopicPartition, int] = {}
    timestamp = reset_timestamp(config)
    if missing and timestamp is not None:
        deadline = router.deadline()
        led = router.retrying(
            "look up leaders", lambda: find_led(router, missing, deadline), deadline
        )
        if led < missing and (led or committed or has_others):
            names, why = ", ".join(map(str, sorted(missing - led))), nothing_committed(config)
            _log.warning("%s: %s, and nobody leads it now: read once somebody does", names, why)
            missing = led
        has_others = bool(committed) or has_others
        waits_s = patience.FIRST_S if patience_s is None else patience_s
        found = _begins(
            router, missing, timestamp, has_others=has_others, patience_s=waits_s, level=level
        )
    return {
        item: CommittedOffset(found[item]) if item in found else committed[item]
        for item in sorted(partitions)
        if item in found or item in committed
    }


def _begins(
    router: Router,
    partitions: Collection[TopicPartition],
    timestamp: int,
    *,
    has_others: bool,
    patience_s: float,
    level: int,
) -> dict[TopicPartition, int]:
    """See `list_bounds`; where there are others, without those whose leader does not answer now."""
    hasty = router.waiting(patience_s)
    try:
        with hasty.trying_once():
            return list_bounds(hasty, partitions, timestamp)
    except KafkaProtoError as error:
        if not is_retriable(error):
            raise
        answered = set(error.usable or ())
        if answered or has_others:
            names = ", ".join(map(str, sorted(set(partitions) - answered)))
            _log.log(level, "%s: read once its leader tells where to begin: %s", names, error)
            partitions = answered
    # Asked once more: of a time `usable` has where the logs end.
    return list_bounds(router, partitions, timestamp)


def find_led(
    router: Router, partitions: Collection[TopicPartition], deadline: Deadline
) -> set[TopicPartition]:
    """Those of them that have a leader now, as one broker knows it; one try.

    Raises:
        BrokerError: one of the topics may not be seen.
    """
    topology = router.topology({item.topic for item in partitions}, deadline)
    led = set()
    for partition in partitions:
        try:
            topology.leader(partition)
        except BrokerError as error:
            if not is_retriable(error):
                raise
            router.distrust_last()  # it may be behind: another one is asked the next time
        else:
            led.add(partition)
    return led


def nothing_committed(config: ConsumerConfig) -> str:
    """Why a partition has no place to begin at."""
    return f"group {config.group_id!r} has committed nothing for it"


def without_policy(partitions: Collection[TopicPartition], why: str) -> BrokerError:
    """The error where auto.offset.reset is to say where to go on, and is none."""
    subject = "partition " + ", ".join(map(str, sorted(partitions)))
    text = f"{why}, and auto.offset.reset is none: set it, commit an offset, or seek one"
    return BrokerError(OFFSET_OUT_OF_RANGE, "Fetch", subject, text)
