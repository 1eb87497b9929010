"""Commits of what a stream has read to a consumer group, so that Kafka's tools see its lag.

They are for others to look at: the query goes by its checkpoint. So a commit that fails is tried
again with the next one and never stops the query, and offsets never move backwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from pyspark_kafkaproto.cluster import CommittedOffset, KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.capturing import add_packets, packets_with_errors
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.net import ClientConfig

_log = logging.getLogger(__name__)

# A commit may hold a batch up for so long, not for a whole default.api.timeout.ms.
_PATIENCE_S = 10.0
_TRY_AGAIN_S = 10.0
# Offsets of a group without members expire, after 7 days by default; brokers may be told less.
_KEEP_ALIVE_S = 600.0


class GroupCommits:
    """Commits to one group.

    Args:
        config: how to reach the cluster.
        group: which; it must have no members, and be no share group.
    """

    def __init__(self, config: ClientConfig, group: str) -> None:
        patience_s = min(_PATIENCE_S, config.default_api_timeout_s)
        self._cluster = KafkaCluster(replace(config, default_api_timeout_s=patience_s))
        self._group = group
        self._metadata = ""
        self._wanted: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] | None = None
        self._tried_at = 0.0
        self._gone: set[TopicPartition] = set()  # refused since: their topic was not there

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    @packets_with_errors()
    def check_free(self, given_as: str = "commitGroupId") -> None:
        """Refuse a group to which nothing can be committed: it has members, or shares records.

        Args:
            given_as: the option or argument that the user named the group by.

        Raises:
            ConfigError: it has, or is one.
            BrokerError: this user may not look at it, and so may not commit to it either.
        """
        try:
            found = self._cluster.describe_groups({self._group})[self._group]
        except BrokerError as error:
            if error.code == GROUP_ID_NOT_FOUND:
                return
            if not error.error.is_retriable:
                raise
            self._warn("whether it has members is not known", error)
            return
        except (ConnectionFailed, DeadlineExceeded) as error:
            self._warn("whether it has members is not known", error)
            return
        if found.type == "share":
            raise ConfigError(
                given_as,
                self._group,
                "it is a share group, to which nothing is committed: give a group of its own, by a "
                "name that no other group has",
            )
        if found.members:
            hosts = ", ".join(sorted({member.host for member in found.members}))
            raise ConfigError(
                given_as,
                self._group,
                f"the group has {len(found.members)} members (at {hosts}), and only they may "
                "commit: give a group of its own",
            )

    def commit(self, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit `offsets`, each the next one to read, where they lie ahead of what is committed.

        What cannot be committed is logged, and tried again later: batches do not wait for a
        coordinator that does not answer more often than every 10 s.
        """
        self._metadata = metadata
        if self._done is not None and offsets == self._wanted:
            return  # an idle stream says so at each look; `keep_alive` counts from the last commit
        self._wanted = dict(offsets)
        if not self._has_failed or self._waited_s() > _TRY_AGAIN_S:
            # Batches once an hour: partitions without news in them might expire, too.
            self._try_commit(again=self._tried_at > 0 and self._waited_s() > _KEEP_ALIVE_S)

    def keep_alive(self) -> None:
        """To be called now and then: what failed is tried again, what might expire is renewed."""
        wait_s = _TRY_AGAIN_S if self._has_failed else _KEEP_ALIVE_S
        if self._wanted and self._waited_s() > wait_s:
            self._try_commit(again=True)

    def finish(self, left: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """A last try for what failed, a commit of what others are ahead, the end of connections.

        Args:
            left: where others are that still read. All other partitions are their group's own from
                now on: who sets its offsets before the query is started again is not overruled.
            metadata: the text beside those.
        """
        # A topic that was not there may be made again by now: its offsets are of the old one.
        self._wanted = {item: at for item, at in self._wanted.items() if item not in self._gone}
        if self._has_failed:
            self._try_commit()
        self._wanted = {item: at for item, at in left.items() if item in self._wanted}
        self._metadata = metadata
        if self._done is not None and self._beyond(self._done):
            self._try_commit()
        self.close()

    @property
    def _has_failed(self) -> bool:
        """Whether the last try failed; none was made yet if the first has not."""
        return bool(self._wanted) and self._done is None and self._tried_at > 0

    def _waited_s(self) -> float:
        return time.monotonic() - self._tried_at

    def _warn(self, what: str, error: KafkaProtoError) -> None:
        _log.warning("group %r: %s: %s", self._group, what, error)

    def _try_commit(self, *, again: bool = False) -> None:
        failed_before = self._has_failed
        ahead: dict[TopicPartition, int] = {}
        try:
            ahead = self._ahead(again=again)
            if ahead:
                self._cluster.set_consumer_offsets(
                    self._group,
                    {item: CommittedOffset(at, self._metadata) for item, at in ahead.items()},
                )
        except KafkaProtoError as error:
            self._done = None  # whatever is committed is looked up again
            if isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION:
                self._gone |= ahead.keys() - (error.usable or set())
            if not failed_before:  # a process leaves few files: one is enough for this
                add_packets(error)
            self._warn("the commit failed and is tried again later", error)
            return
        finally:
            self._tried_at = time.monotonic()
        self._done = (self._done or {}) | ahead
        self._gone.clear()

    def _ahead(self, *, again: bool) -> dict[TopicPartition, int]:
        """What there is to commit: never an offset before one that is committed.

        The group is asked each time: others may commit to it, partitions may be new here, and those
        of a topic that was made anew are not as far as before: brokers forgot what was committed.
        """
        if again or self._done is None or self._wanted.items() - self._done.items():
            self._done = self._cluster.get_consumer_offsets(self._group, self._wanted)
        return self._beyond(self._done) | (self._equal(self._done) if again else {})

    def _beyond(self, done: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {item: at for item, at in self._wanted.items() if at > done.get(item, -1)}

    def _equal(self, done: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {item: at for item, at in self._wanted.items() if at == done.get(item)}
