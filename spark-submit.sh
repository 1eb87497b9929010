#!/usr/bin/env bash
# Without arguments: the main job, from nothing. It reads what is new in a Kafka topic and commits
# the offsets; without KAFKA_BOOTSTRAP_SERVERS it brings a Kafka of its own.
# With arguments: any job, by spark-submit, with conf/ and the package in place:
#
#   ./spark-submit.sh
#   KAFKA_BOOTSTRAP_SERVERS=broker-1:9092 ./spark-submit.sh
#   ./spark-submit.sh my_job.py its arguments
#   ./spark-submit.sh --master 'local[4]' --conf spark.ui.enabled=true my_job.py
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/prepare-venv.sh
. "$root/tools/prepare-venv.sh"

require_tools
prepare_venv spark cli

# Without a locale Java takes file names for ASCII, and finds nothing below a folder `jürgen`. Python
# sets the same for itself (PEP 538).
case "$OSTYPE:${LC_ALL:-${LC_CTYPE:-${LANG:-C}}}" in
    linux*:C | linux*:POSIX)
        export LC_CTYPE=C.UTF-8
        [ -z "${LC_ALL:-}" ] || export LC_ALL=C.UTF-8
        ;;
esac

# The Spark that was installed here, and no other that the machine may have. Left to itself, Spark
# looks for it with a script that cannot do with spaces.
SPARK_HOME=$("$venv/bin/python" -c \
    'from importlib.util import find_spec; print(*find_spec("pyspark").submodule_search_locations)')
export SPARK_HOME
export SPARK_CONF_DIR="$root/conf"
# Beside conf/'s loopback addresses: without it Spark warns about the machine's name at every start.
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"
export PATH="$venv/bin:$PATH"
spark_python="$venv/bin/python"
# Where its path is no word of a shell, Spark takes it for missing, and finds no source in Python.
case "$spark_python" in *[[:space:]]*) spark_python=python ;; esac
export PYSPARK_PYTHON="$spark_python" PYSPARK_DRIVER_PYTHON="$spark_python"
export KAFKAPROTO_BROKER_PROPERTIES="${KAFKAPROTO_BROKER_PROPERTIES-$root/conf/broker.properties}"
# In a local run the workers have this environment; on a cluster's executors conf/ sets it.
export KAFKAPROTO_LOG_LEVEL="${KAFKAPROTO_LOG_LEVEL-INFO}"

if [ $# -eq 0 ]; then
    set -- "$root/pyspark_kafkaproto/jobs/offset_ranges.py"
fi
exec "$venv/bin/spark-submit" "$@"
