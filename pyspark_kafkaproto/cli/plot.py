"""Lag as a picture: bars of one moment, or lines over the time that it was watched."""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from pyspark_kafkaproto.cli.files import cannot_write, check_writable
from pyspark_kafkaproto.cluster import Lag
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.wire.printable import printed

_INCHES = (10, 6)
_MOST_LABELS = 20


def check_plot(file: Path) -> None:
    """Refuse what cannot be drawn before it is watched for hours.

    Raises:
        ClickException: there is no matplotlib.
        ConfigError: the name's ending is no format, or nothing can be written there.
    """
    if find_spec("matplotlib") is None:
        raise click.ClickException(
            "--plot needs matplotlib: pip install 'pyspark-kafkaproto[plot]'"
        )
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to load

    formats = Figure().canvas.get_supported_filetypes()
    if file.suffix[1:].lower() not in formats:
        raise ConfigError("--plot", str(file), f"expected FILE with one of .{', .'.join(formats)}")
    check_writable("--plot", file)


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
        names = {key: _label(*key) for key in sorted(self._lags)}
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
            raise cannot_write("--plot", file, error) from error


def _label(group: str, topic: str, partition: int) -> str:
    """A row's name; to matplotlib dollars mean a formula, and a line in front no legend."""
    shown = printed(f"{group} {topic}-{partition}").replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
