"""The records of `__transaction_state` (form: codecs/schema.py).

Law: numbers and tags are on disk in every cluster; a line is added here, never changed.
The value is flexible from version 1 on, which transaction.version 1 brings (KIP-890).

Source: KIP-98, KIP-890; what Apache Kafka 4.3.1 writes and reads.
"""

from __future__ import annotations

from typing import Final

# The first version of the value that is flexible; the key never is.
FIRST_FLEXIBLE_VALUE: Final = 1

TRANSACTION_LOG_VALUES: Final = """
TransactionLogValue 0 0-1
  producer_id int64
  previous_producer_id int64 1+ tag=0 default=-1
  next_producer_id int64 1+ tag=1 default=-1
  producer_epoch int16
  next_producer_epoch int16 1+ tag=3 default=-1
  transaction_timeout_ms int32
  transaction_status int8
  transaction_partitions []PartitionsSchema null=0+
    topic string
    partition_ids []int32
  transaction_last_update_timestamp_ms int64
  transaction_start_timestamp_ms int64
  client_transaction_version int16 1+ tag=2
"""
