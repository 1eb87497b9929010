"""Spark's own connector is of the version that PySpark is, where there are several."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafkaproto.devbroker import connector


@pytest.mark.parametrize(
    ("spark", "expected"), [("4.0.5", "4.0.0"), ("4.1.4", "4.1.0"), ("4.3.0", "4.2.0")]
)
def test_connector_fits_the_pyspark_that_is_installed(monkeypatch, spark, expected):
    monkeypatch.setattr(connector, "version", lambda _: spark)
    monkeypatch.setattr(connector, "fetch", lambda module, number, **_: Path(number))
    name = "spark-sql-kafka-0-10_2.13"
    assert connector.connector_jars()[0] == f"{expected}/{name}-{expected}.jar"
