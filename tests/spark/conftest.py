"""A Spark session with both connectors: ours, found by itself, and Spark's own as the yardstick."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from bench.reading.rival_jars import connector_jars

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[SparkSession]:
    # Workers run what `python3` is on the PATH otherwise.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        # Of the usual 1 GiB two values of 50 MB at once take 0.95; Spark ends at the last byte.
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(connector_jars()))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()
