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

# The Spark that was installed here, and no other that the machine may have.
unset SPARK_HOME
export SPARK_CONF_DIR="$root/conf"
# Beside conf/'s loopback addresses: without it Spark warns about the machine's name at every start.
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"
export PYSPARK_PYTHON="$venv/bin/python" PYSPARK_DRIVER_PYTHON="$venv/bin/python"
export PATH="$venv/bin:$PATH"
export KAFKAPROTO_BROKER_PROPERTIES="${KAFKAPROTO_BROKER_PROPERTIES-$root/conf/broker.properties}"
# In a local run the workers have this environment; on a cluster's executors conf/ sets it.
export KAFKAPROTO_LOG_LEVEL="${KAFKAPROTO_LOG_LEVEL-INFO}"

if [ $# -eq 0 ]; then
    set -- "$root/pyspark_kafkaproto/jobs/offset_ranges.py"
fi
exec "$venv/bin/spark-submit" "$@"
