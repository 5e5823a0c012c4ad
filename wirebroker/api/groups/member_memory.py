"""Limits on what members of groups join with: metadata of protocols, or names of topics.

Kafka enforces the member's limit when its record does not fit into a batch, and does not limit the
sum of all members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker

# Bytes: size up to which nothing is checked; maximum of one member; maximum of all members here.
FEW_METADATA_BYTES = 16 << 10
MOST_METADATA_BYTES = 4 << 20
MOST_METADATA_BYTES_OF_ALL = 64 << 20


def memory_error(
    broker: Broker, group_id: str, member_id: str, instance_id: str | None, size: int
) -> ErrorCode:
    """Return the error if a member with `size` bytes would exceed a limit."""
    if size <= FEW_METADATA_BYTES:
        return ErrorCode.NONE
    if size > MOST_METADATA_BYTES:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    shards = tuple(broker.groups.shards())
    groups = (shard.groups.get(group_id) for shard in shards)
    own = (group.member_bytes(member_id, instance_id) for group in groups if group is not None)
    added = size - max(own, default=0)
    stored_bytes = sum(shard.metadata_bytes for shard in shards)
    too_much = added > 0 and stored_bytes + added > MOST_METADATA_BYTES_OF_ALL
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if too_much else ErrorCode.NONE
