"""Answers that break off anywhere, of any log: every row once and in order, aborted ones never.

Law: what is read does not depend on where answers end, nor on how large the pieces are in which
they are decoded.
"""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.client.reading import fetch
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.net import ClientConfig, Endpoint, connections_for
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import ABORT_MARKER, COMMIT_MARKER, CONTROL, TRANSACTIONAL
from tests.examples import examples
from tests.fake_broker import FakeCluster, cut
from tests.fake_log import Batch
from tests.fake_log import fetch as answer_to

PARTITIONS = (0, 1)


class Log:
    """What is written into one partition, and which of its offsets a committed reader gets."""

    def __init__(self):
        self.batches, self.rows, self.aborted = [], [], []
        self.stop = 0
        self._open = {}  # producer id to first offset and offsets of its transaction

    def write(self, deltas, span, size_bytes, codec, producer_id):
        records = [NewRecord(bytes(size_bytes), offset_delta=delta) for delta in deltas]
        fields = {"codec": codec, "last_offset_delta": span - 1}
        offsets = [self.stop + delta for delta in deltas]
        if producer_id is None:
            self.rows += offsets
        else:
            fields |= {"producer_id": producer_id, "attributes": TRANSACTIONAL}
            self._open.setdefault(producer_id, (self.stop, []))[1].extend(offsets)
        self._append(encode_batch(records, base_offset=self.stop, **fields), span)

    def end(self, producer_id, *, aborts):
        if producer_id not in self._open:
            return
        first, offsets = self._open.pop(producer_id)
        kind = ABORT_MARKER if aborts else COMMIT_MARKER
        key = (0).to_bytes(2) + kind.to_bytes(2, signed=True)
        fields = {"producer_id": producer_id, "attributes": TRANSACTIONAL | CONTROL}
        if aborts:
            self.aborted.append((producer_id, first, self.stop))
        else:
            self.rows = sorted(self.rows + offsets)
        marker = encode_batch([NewRecord(bytes(6), key)], base_offset=self.stop, **fields)
        self._append(marker, 1)

    def _append(self, data, span):
        self.stop += span
        self.batches.append(Batch(data, self.stop))


@st.composite
def logs(draw):
    log = Log()
    for _ in range(draw(st.integers(1, 12))):
        producer_id = draw(st.sampled_from([None, 7, 8]))
        if producer_id and draw(st.booleans()):
            log.end(producer_id, aborts=draw(st.booleans()))
            continue
        span = draw(st.integers(1, 9))
        deltas = sorted(draw(st.sets(st.integers(0, span - 1), min_size=1)))
        size_bytes, codec = draw(st.sampled_from([5, 300, 2000])), draw(st.sampled_from([0, 1, 4]))
        log.write(deltas, span, size_bytes, codec, producer_id)
    for producer_id in (7, 8):
        log.end(producer_id, aborts=draw(st.booleans()))
    return log


@pytest.mark.slow
@given(
    st.tuples(logs(), logs()),
    st.sampled_from([100, 1000, 4000]),
    st.lists(st.integers(0, 30_000), max_size=8),
    st.sampled_from([4, 11, 12, 17]),
    st.data(),
)
@examples(100)
def test_every_row_comes_once(drawn, piece_bytes, cuts, version, data):
    with FakeCluster({"orders": 2}) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "PIECE_BYTES", piece_bytes)
        patch.setattr(fetch, "_PIECE_ALONE_BYTES", piece_bytes)
        cluster.versions["Fetch"] = (4, version)
        for partition, log in enumerate(drawn):
            cluster.logs["orders", partition].batches = log.batches
            cluster.logs["orders", partition].stop = log.stop

        def answer(call):
            for topic in call.request.topics:
                for asked in topic.partitions:
                    ended = drawn[asked.partition].aborted
                    cluster.logs["orders", asked.partition].aborted = [
                        (producer_id, first)
                        for producer_id, first, end in ended
                        if end >= asked.fetch_offset
                    ]
            whole = answer_to(cluster, call)
            return cut(whole, cuts.pop()) if cuts else whole

        cluster.on("Fetch", answer)
        bounds = [sorted(data.draw(st.integers(0, log.stop)) for _ in "ab") for log in drawn]
        config = ClientConfig.parse(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "isolation.level": "read_committed",
                "retry.backoff.ms": "1",
                "retry.backoff.max.ms": "1",
            }
        )
        task = ReadTask(
            tuple(
                OffsetRange("orders", *item)
                for item in zip(PARTITIONS, *zip(*bounds, strict=True), strict=True)
            ),
            {
                TopicPartition("orders", partition): Leader(
                    1, Endpoint.parse(cluster.address(1)), 0
                )
                for partition in PARTITIONS
            },
            {"orders": cluster.topics["orders"].topic_id if version > 12 else None},
        )
        schema = schema_for(["partition", "offset"])
        batches = list(read_batches(task, config, ReadSettings(), schema))
        connections_for(config).close()
    found = [
        list(
            chain.from_iterable(
                batch.column("offset").to_pylist()
                for batch in batches
                if batch.column("partition")[0].as_py() == partition
            )
        )
        for partition in PARTITIONS
    ]
    assert found == [
        [row for row in log.rows if start <= row < stop]
        for log, (start, stop) in zip(drawn, bounds, strict=True)
    ]
