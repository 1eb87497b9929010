"""Importing the package costs nothing and cannot fail; its names come on first use."""

import subprocess
import sys

import pytest

import pyspark_kafkaproto

HEAVY = ("pyspark", "pyarrow", "click", "rich", "numpy", "cramjam")


def _loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.slow
def test_import_loads_nothing_heavy():
    assert _loaded_by("import pyspark_kafkaproto").isdisjoint(HEAVY)


@pytest.mark.slow
def test_import_loads_no_room_of_the_package():
    script = (
        "import sys, pyspark_kafkaproto\n"
        "assert [n for n in sys.modules if n.startswith('pyspark_kafkaproto')] == "
        "['pyspark_kafkaproto']"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
def test_command_line_loads_no_spark():
    loaded = _loaded_by("import pyspark_kafkaproto.cli.root")
    assert loaded.isdisjoint({"pyspark", "pyarrow"})


@pytest.mark.slow
def test_cluster_loads_neither_spark_nor_arrow():
    assert _loaded_by("from pyspark_kafkaproto import KafkaCluster").isdisjoint(HEAVY)


@pytest.mark.slow
@pytest.mark.parametrize("room", ["source", "write", "read"])
def test_what_plans_in_spark_loads_little_beside_it(room):
    # Spark starts a process for each kind of question, and an application waits for each of them.
    spark = "import pyspark.sql.datasource"
    ours = f"{spark}, pyspark_kafkaproto.spark.{room}; pyspark_kafkaproto.spark.DefaultSource"
    more = _loaded_by(ours) - _loaded_by(spark)
    assert more.isdisjoint({*HEAVY, "crc32c", "email", "argparse"})


@pytest.mark.parametrize("name", pyspark_kafkaproto.__all__)
def test_public_names_are_there(name):
    assert hasattr(pyspark_kafkaproto, name)
    assert name in dir(pyspark_kafkaproto)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'KafkaClutser'"):
        _ = pyspark_kafkaproto.KafkaClutser
