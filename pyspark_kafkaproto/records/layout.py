"""Where each field of batches and messages stands: constants alone, no code that reads bytes.

Record batch, magic 2 (KIP-98, https://kafka.apache.org/documentation/#recordbatch), big-endian:

    pos  0  base_offset             int64
         8  length                  int32   bytes after this field
        12  partition_leader_epoch  int32   outside the CRC: brokers write it
        16  magic                   int8
        17  crc                     uint32  CRC-32C of everything after this field
        21  attributes              int16   bits: see below
        23  last_offset_delta       int32
        27  base_timestamp          int64   milliseconds
        35  max_timestamp           int64
        43  producer_id             int64
        51  producer_epoch          int16
        53  base_sequence           int32
        57  record_count            int32
        61  records                         compressed as one stream when the attributes say so

A record is varints throughout (zigzag, as in Protocol Buffers): length, attributes (int8),
timestamp_delta (varlong), offset_delta, key length and key, value length and value (-1 is null),
header count, and per header a key (never null) and a value.

With the delete-horizon bit (KIP-534) base_timestamp holds the horizon, and the deltas were written
relative to it: base_timestamp + delta is the record's timestamp either way.

Message, magic 0 and 1 (https://kafka.apache.org/documentation/#messageset, KIP-31, KIP-32), what
logs hold that are older than record batches; the magic stands at the same place in all three:

    pos  0  offset                  int64   of a wrapper: that of the last message inside
         8  length                  int32   bytes after this field
        12  crc                     uint32  CRC-32 (zlib's) of everything after this field
        16  magic                   int8
        17  attributes              int8    the codec; in magic 1 LOG_APPEND_TIME too
        18  timestamp               int64   milliseconds; in magic 1 alone
            key                             int32 size, -1 for null, and as many bytes
            value                           likewise; a set of messages when there is a codec

Offsets inside a wrapper are absolute in magic 0, relative to one another in magic 1.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

LENGTH_POS: Final = 8
LOG_OVERHEAD: Final = 12  # base_offset and length, which `length` does not count
MAGIC_POS: Final = 16
CRC_POS: Final = 17
ATTRIBUTES_POS: Final = 21
HEADER_SIZE: Final = 61
MIN_LENGTH: Final = 14  # a magic 0 message without key and value: nothing valid is shorter
MIN_LENGTH_V2: Final = HEADER_SIZE - LOG_OVERHEAD
MIN_LENGTHS: Final = {0: MIN_LENGTH, 1: MIN_LENGTH + 8, 2: MIN_LENGTH_V2}  # by magic
MIN_RECORD_SIZE: Final = 7  # one byte for each of its fields
MIN_HEADER_SIZE: Final = 2  # an empty key and a null value

MAGIC_V0: Final = 0
MAGIC_V1: Final = 1
MAGIC_V2: Final = 2

HEADER: Final = Struct(">qiibIhiqqqhii")
FRONT: Final = Struct(">qi")  # base_offset and length: all that says how far a batch reaches
MESSAGE: Final = Struct(">qiIbB")  # offset to attributes: what messages of magic 0 and 1 share
MESSAGE_TIMESTAMP: Final = Struct(">q")
MESSAGE_FIELD: Final = Struct(">i")  # the size of a key or value

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_PRODUCER_ID: Final = -1
NO_LEADER_EPOCH: Final = -1  # of messages of magic 0 and 1, and of batches no broker wrote
NO_TIMESTAMP_MS: Final = -1  # of a message of magic 0, whose timestamp type is NO_TIMESTAMP_TYPE
NO_TIMESTAMP_TYPE: Final = -1
CONTROL_KEY: Final = Struct(">hh")  # key of a control record: version, type
ABORT_MARKER: Final = 0
COMMIT_MARKER: Final = 1

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

DEFAULT_BATCH_LIMIT_BYTES: Final = 128 << 20
DEFAULT_CHUNK_BYTES: Final = 2 << 20

# What can be wrong with a record or message. Both implementations say it in these words.
VARINT_CUT: Final = "a varint runs past the end of the record"
VARINT_TOO_LONG: Final = "a varint does not fit its 32 or 64 bits"
RECORD_LENGTH: Final = "its length is negative or runs past the end of the batch"
RECORD_LEFTOVER: Final = "its length does not agree with its content"
FIELD_LENGTH: Final = "the length of a key or value is below -1 or runs past the end of the record"
OFFSET_ORDER: Final = "its offset is not above the one before it and within the batch's last offset"
HEADER_COUNT: Final = "its number of headers is negative or more than its bytes can hold"
HEADER_KEY: Final = "a header key is null or runs past the end of the record"
TIMESTAMP_RANGE: Final = (
    "its timestamp in microseconds does not fit 64 bits: Kafka's are milliseconds, and its "
    "producer may have written microseconds or nanoseconds"
)
MESSAGE_LENGTH: Final = "its length is below the least of its magic or runs past the end of the set"
MESSAGE_MAGIC: Final = "its magic is not that of the message it is in"
MESSAGE_CRC: Final = "its CRC-32 is not that of its bytes"
MESSAGE_ORDER: Final = "its offset is negative or not above the one before it"
MESSAGE_NESTED: Final = "it is compressed and stands in a compressed message"
