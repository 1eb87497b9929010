"""The bars that a release has to clear, and whether a run did. Pure: figures in, verdicts out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reading import measures as m

# (workload, measure) -> records per second
Rates = Mapping[tuple[str, str], float]

MIB = 1 << 20
_CEILING = {
    "100 B none": 0.80,
    "100 B gzip": 0.65,
    "100 B snappy": 0.75,
    "100 B lz4": 0.80,
    "100 B zstd": 0.80,
    "10 kB none": 0.70,
    "10 kB zstd": 0.50,
}
_RIVAL = {
    "100 B none": 3.0,
    "100 B gzip": 2.5,
    "100 B snappy": 3.0,
    "100 B lz4": 3.0,
    "100 B zstd": 3.0,
    "10 kB none": 2.5,
    "10 kB zstd": 2.5,
}
_VALUE_ALONE = 1.3
_UNCOMPRESSED = ("100 B none", "10 kB none")
_WIDE_S = 3.0
_PLAN_S = 1.0
_GROWTH_BYTES = 10_000_000
_RING_PERCENT = 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One requirement: `measured` has to be at least `needed`, or at most if `is_limit`.

    `unit` is `x` for ratios, else `s`, `%` or `MiB`.
    """

    subject: str
    needed: float
    measured: float
    unit: str = "x"
    is_limit: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the bar is cleared; nothing is rounded before."""
        if self.is_limit:
            return self.measured <= self.needed
        return self.measured >= self.needed

    @property
    def verdict(self) -> str:
        """`met` or `MISSED`."""
        return "met" if self.is_met else "MISSED"

    def shown(self) -> tuple[str, str, str, str]:
        """A row: what, needed, measured, verdict."""
        sign = "≤" if self.is_limit else "≥"
        return (
            self.subject,
            f"{sign} {self.needed:.2f} {self.unit}",
            f"{self.measured:.3f} {self.unit}",
            self.verdict,
        )


def rate_bars(rates: Rates) -> Iterator[Bar]:
    """The bars about speed, those whose two figures are there."""
    pairs = [
        ("engine's ceiling", m.SPARK_OURS, m.SPARK_CEILING, _CEILING),
        ("Spark's own connector", m.SPARK_OURS_CONF, m.SPARK_RIVAL, _RIVAL),
        ("all columns", m.SPARK_VALUE, m.SPARK_OURS, dict.fromkeys(_RIVAL, _VALUE_ALONE)),
        ("ConsumerPerformance", m.CLIENT_OURS, m.CONSUMER_PERFORMANCE, dict.fromkeys(_RIVAL, 4)),
        ("confluent-kafka", m.CLIENT_OURS, m.CONFLUENT, dict.fromkeys(_RIVAL, 10)),
        ("bare socket", m.CLIENT_OURS, m.BARE_SOCKET, dict.fromkeys(_UNCOMPRESSED, 0.8)),
    ]
    for what, ours, other, needed in pairs:
        for workload, ratio in needed.items():
            mine, theirs = rates.get((workload, ours)), rates.get((workload, other))
            if mine is not None and theirs is not None:
                yield Bar(f"{workload}: {ours} / {what}", ratio, mine / theirs)


def wide_bars(workload: str, seconds: Mapping[str, float]) -> Iterator[Bar]:
    """The bars about many partitions, from the seconds of each measure."""
    for measure, needed in ((m.SPARK_OURS, _WIDE_S), (m.PLAN, _PLAN_S)):
        if measure in seconds:
            subject = f"{workload}: {measure}"
            yield Bar(subject, needed, seconds[measure], "s", is_limit=True)


def memory_bar(workload: str, extra_bytes: float, block_bytes: int, batch_bytes: int) -> Bar:
    """Peak of a reading worker less that of one that yields prebuilt batches."""
    needed = 4 * max(block_bytes, batch_bytes) + 32_000_000
    subject = f"{workload}: memory above a worker with prebuilt batches"
    return Bar(subject, needed / MIB, extra_bytes / MIB, "MiB", is_limit=True)


def growth_bar(workload: str, growth_bytes: float) -> Bar:
    """How much the peak grows when ten times as many records are read."""
    subject = f"{workload}: growth of the peak with ten times the records"
    return Bar(subject, _GROWTH_BYTES / MIB, growth_bytes / MIB, "MiB", is_limit=True)


def ring_bar(workload: str, cost: float) -> Bar:
    """How much longer reading takes when connections remember their last frames; 0.02 is 2 %."""
    subject = f"{workload}: cost of remembering the last frames"
    return Bar(subject, _RING_PERCENT, 100 * cost, "%", is_limit=True)
