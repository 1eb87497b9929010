"""The embedded broker: a real Apache Kafka in KRaft mode, without Docker and without Maven.

`broker` starts and stops it: each `node` a JVM with its `settings`, ended by a `watchdog` with
whoever started it; `logs` say why one ended, `running` finds one that runs. `tools` runs Kafka's
own command-line programs against it or any other broker, `jars` brings both through PySpark's Ivy
(`connector`: Spark's connector too), `java` finds and starts the JVM. This room does not speak the
protocol: it looks at `files`, ports and `processes` alone, so that a fault in our client cannot
hide in the broker it is tested against. POSIX systems only.
"""

from pyspark_kafkaproto.devbroker.broker import DevBroker, default_data_dir
from pyspark_kafkaproto.devbroker.jars import DEFAULT_VERSION
from pyspark_kafkaproto.devbroker.running import RunningBroker, find_running
from pyspark_kafkaproto.devbroker.tools import KafkaTools

__all__ = [
    "DEFAULT_VERSION",
    "DevBroker",
    "KafkaTools",
    "RunningBroker",
    "default_data_dir",
    "find_running",
]
