"""The layout of a record batch's header (table: codecs/README.md; for C: codecs/_layout.h).

Source: KIP-98; class DefaultRecordBatch.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
RECORD_COUNT_AT: Final = 57
HEADER_BYTES: Final = 61

# Bytes that `length` does not count.
OVERHEAD_BYTES: Final = 12
CRC_START: Final = 21
# Second byte of the attributes, with all known bits.
FLAGS_AT: Final = 22

MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
# The other bits are undefined.
KNOWN_ATTRIBUTES: Final = 0x7F

HEADER: Final = Struct(">qiibIhiqqqhii")

# Single fields; unpack and pack at their `_AT`.
BASE_OFFSET: Final = Struct(">q")
LENGTH: Final = Struct(">i")
LEADER_EPOCH: Final = Struct(">i")
CRC: Final = Struct(">I")
ATTRIBUTES: Final = Struct(">h")
MAX_TIMESTAMP: Final = Struct(">q")
RECORD_COUNT: Final = Struct(">i")

# Adjacent fields, from the `_AT` of the first.
TIMESTAMPS: Final = Struct(">qq")  # base_timestamp, max_timestamp
PRODUCER: Final = Struct(">qhi")  # producer_id, producer_epoch, base_sequence

# From the batch's first byte.
LENGTH_AND_MAGIC: Final = Struct(">8xi4xb")
LENGTH_MAGIC_FLAGS: Final = Struct(">8xi4xB5xB")
OFFSETS_AND_ATTRIBUTES: Final = Struct(">qi9xhi")  # base_offset, length, attributes, last delta
