"""What every Python process of Spark that runs our code is prepared with, once.

Spark's Python workers configure no logging: what is logged below WARNING goes nowhere. With
KAFKAPROTO_LOG_LEVEL set (on executors: `spark.executorEnv.KAFKAPROTO_LOG_LEVEL`), this package's
log lines go to the worker's standard error, which Spark keeps as the executor's log. Where Spark
keeps what workers log by itself (spark.sql.pyspark.worker.logging.enabled), they go there alone.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import sys
from functools import cache

from pyspark_kafkaproto.errors import ConfigError

_VARIABLE = "KAFKAPROTO_LOG_LEVEL"
# As `pyspark.logger.worker_io` reads it.
_SPARK_KEEPS = "PYSPARK_SPARK_SESSION_UUID"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_MORE = 1.25  # times the modules: then those that came are frozen, too
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_log = logging.getLogger("pyspark_kafkaproto")


@cache
def configure_logging() -> None:
    """Send this package's log lines to standard error, once, if the environment asks for it."""
    level = os.environ.get(_VARIABLE, "").upper()
    if not level:
        return
    if level not in _LEVELS:
        raise ConfigError(_VARIABLE, level, f"expected one of {', '.join(_LEVELS)}")
    _log.setLevel(level)
    if _is_kept_by_spark():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    _log.addHandler(handler)


def _is_kept_by_spark() -> bool:
    """Whether Spark takes log lines from the root logger, and standard error as lines of errors.

    Not all of its Python processes do where their environment says so: a stream's planner does not.
    """
    return _SPARK_KEEPS in os.environ and bool(logging.getLogger().handlers)


def spare_the_collector() -> None:
    """Keep what was imported so far out of garbage collections.

    Spark's worker collects after every task, which walks over all objects of all modules, and
    makes pages its own that it shared with the daemon: 20 to 30 ms a task, as much as a small one
    takes. Its processes that plan do the same after every question, while the first tasks run.
    Frozen, they are passed over; what this process makes later is collected as ever. The first
    task of a worker imports as much again (Spark: pandas), which the next one finds. A module here
    and there is not worth it: what is alive at that moment, and garbage later, would never go.
    """
    _freeze(int(math.log(len(sys.modules), _MORE)))


@cache  # so often at most, in all the time that the process lives
def _freeze(_size: int) -> None:
    gc.freeze()
