# Types of the native encoder; see `pyspark_kafkaproto.records` for what the functions do.

from pyspark_kafkaproto.records.reference_write import BatchBuilder as BatchBuilder
from pyspark_kafkaproto.records.reference_write import group_rows as group_rows
from pyspark_kafkaproto.records.reference_write import partition_keys as partition_keys
