"""The classic groups' records in `__consumer_offsets` (form: codecs/schema.py).

Law: numbers and tags are on disk in every cluster; a line is added here, never changed.
Up to version 3 the values are not flexible (codecs/coordinator_records.py says so to the compiler).

Source: KIP-88, KIP-211, KIP-320, KIP-345, KIP-915; what Apache Kafka 4.3.1 writes and reads.
"""

from __future__ import annotations

from typing import Final

# The first version of the values that is flexible (KIP-915); the keys never are.
FIRST_FLEXIBLE_VALUE: Final = 4

GROUP_COORDINATOR_VALUES: Final = """
OffsetCommitValue 1 0-4
  offset int64
  leader_epoch int32 3+ default=-1 ignorable
  metadata string
  commit_timestamp int64
  expire_timestamp int64 1 default=-1 ignorable
  topic_id uuid 4+ tag=0 ignorable

GroupMetadataValue 2 0-4
  protocol_type string
  generation int32
  protocol string null=0+
  leader string null=0+
  current_state_timestamp int64 2+ default=-1 ignorable
  members []MemberMetadata
    member_id string
    group_instance_id string 3+ null=3+ default=null ignorable
    client_id string
    client_host string
    rebalance_timeout int32 1+ default=-1 ignorable
    session_timeout int32
    subscription bytes
    assignment bytes
"""
