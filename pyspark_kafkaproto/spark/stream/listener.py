"""A listener for streaming queries: commits exactly what each micro-batch has read.

The source itself can commit only one batch behind, and knows neither query nor batch. What the
engine reports after each batch has everything, the last batch included; but only the user can add
a listener to a session.
"""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.spark.stream.commits import GroupCommits
from pyspark_kafkaproto.spark.stream.offsets import from_json

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BehindLatest:
    """How many offsets a query's partitions are behind, after its last batch."""

    least: int
    most: int
    average: float


class _Read(NamedTuple):
    """Where a query's last batch ended, and the text beside that."""

    ends: dict[TopicPartition, int]
    text: str


class OffsetCommitListener(StreamingQueryListener):
    """Commits a query's offsets to a consumer group after every micro-batch.

    ```python
    spark.streams.addListener(OffsetCommitListener(config, "my-group", query_name="orders"))
    ```

    The text beside each offset is JSON: `{"queryId": …, "batchId": …}`. Where several sources or
    queries read the same partition, the one that is farthest behind counts. A commit that fails is
    logged and tried again; it never stops the query.

    Args:
        config: Kafka's client properties, `bootstrap.servers` among them.
        group: to commit to; it must have no members, and be no share group.
        query_name: the query whose batches count, by `queryName`; None: every query of the
            session that has a Kafka source.

    Raises:
        ConfigError: the group has members, or is a share group.
    """

    def __init__(
        self,
        config: Mapping[str, object] | ClientConfig,
        group: str,
        *,
        query_name: str | None = None,
    ) -> None:
        parsed = config if isinstance(config, ClientConfig) else ClientConfig.parse(config)
        self._commits = GroupCommits(parsed, group)
        try:
            self._commits.check_free("group")
        except BaseException:
            self._commits.close()
            raise
        self._query_name = query_name
        self._read: dict[str, _Read] = {}  # by each running query
        self.behind: BehindLatest | None = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing was read yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Commit where the batch ended."""
        progress = event.progress
        if self._query_name is not None and progress.name != self._query_name:
            return
        sources = [_kafka_offsets(source.endOffset) for source in progress.sources]
        ends = _hindmost(sources)
        if not ends:
            return
        query = str(progress.id)
        text = json.dumps({"queryId": query, "batchId": progress.batchId})
        self._read[query] = _Read(ends, text)
        self._commits.commit(self._hindmost(), text)
        latest: dict[TopicPartition, int] = {}
        for source, own in zip(progress.sources, sources, strict=True):
            latest |= _kafka_offsets(source.latestOffset) if own else {}
        self._report(ends, latest)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Offsets that are not committed for days expire."""
        del event
        self._commits.keep_alive()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A last try for what failed; who was stopped holds those that are ahead back no more.

        Who failed does: it may have seen that a topic was made again, and the others not yet.
        Connections open again when another query goes on.
        """
        held = self._hindmost()
        if self._read.pop(str(event.id), None) is None:
            return
        left = self._hindmost()
        if event.exception:
            left = {item: held[item] for item in left}
        others = reversed(self._read.values())
        self._commits.finish(left, next((one.text for one in others), ""))

    def _hindmost(self) -> dict[TopicPartition, int]:
        """What each query has read that reads it."""
        return _hindmost(one.ends for one in self._read.values())

    def _report(
        self, ends: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> None:
        behind = [max(0, latest[item] - at) for item, at in ends.items() if item in latest]
        if not behind:
            return
        self.behind = BehindLatest(min(behind), max(behind), sum(behind) / len(behind))
        _log.info("behind latest: %s", self.behind)


def _hindmost(offsets: Iterable[Mapping[TopicPartition, int]]) -> dict[TopicPartition, int]:
    """The smallest offset of each partition."""
    found: dict[TopicPartition, int] = {}
    for own in offsets:
        found |= {item: min(at, found.get(item, at)) for item, at in own.items()}
    return found


def _kafka_offsets(text: str | None) -> dict[TopicPartition, int]:
    """The offsets of a Kafka source; none where the text is another source's."""
    try:
        loaded = _loaded(text or "null")
        return from_json(loaded) if isinstance(loaded, dict) else {}
    except (ValueError, SyntaxError, ConfigError):
        return {}


def _loaded(text: str) -> Any:
    """What JSON says; or a literal of Python's, as older clients of Spark Connect have it."""
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)
