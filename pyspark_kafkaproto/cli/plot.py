"""Lag as a picture: bars of one moment, or lines over the time that it was watched."""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from pyspark_kafkaproto.cluster import Lag

_INCHES = (10, 6)
_MOST_LABELS = 20


def check_matplotlib() -> None:
    """Say how to get matplotlib before anything is asked of the cluster."""
    if find_spec("matplotlib") is None:
        raise click.ClickException(
            "--plot needs matplotlib: pip install 'pyspark-kafkaproto[plot]'"
        )


class LagOverTime:
    """The lag of each (group, topic, partition) at the moments when it was asked for."""

    def __init__(self) -> None:
        self._moments: list[float] = []
        self._lags: dict[tuple[str, str, int], dict[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._moments)

    def add(self, rows: Iterable[Lag]) -> None:
        """What is seen now."""
        now = time.time()
        self._moments.append(now)
        for row in rows:
            if row.lag is not None:
                key = (row.group, row.topic, row.partition)
                self._lags.setdefault(key, {})[now] = row.lag

    def draw(self, file: Path) -> None:
        """Write the picture; its ending says the format."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to load

        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.subplots()
        names = {key: f"{key[0]} {key[1]}-{key[2]}" for key in sorted(self._lags)}
        if len(self._moments) == 1:
            now = self._moments[0]
            axes.barh(list(names.values()), [self._lags[key][now] for key in names])
            axes.invert_yaxis()
            axes.set_xlabel("lag, records")
        else:
            for key, name in names.items():
                times = [moment - self._moments[0] for moment in self._lags[key]]
                axes.plot(times, list(self._lags[key].values()), label=name)
            axes.set_xlabel("seconds")
            axes.set_ylabel("lag, records")
            if 0 < len(names) <= _MOST_LABELS:
                axes.legend()
        try:
            figure.savefig(file)
        except OSError as error:
            text = f"{file} cannot be written: {error.strerror}"
            raise click.ClickException(text) from error
