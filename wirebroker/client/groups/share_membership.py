"""Membership in a share group: heartbeats, and the assigned partitions (KIP-932).

beat  ->  beat after `interval_s`  ->  …  ->  leave
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from wirebroker.client.kafka_client import KafkaClient

    # A topic's id and the partition's number.
    TopicIdPartition: TypeAlias = tuple[bytes, int]

_JOINING: Final = 0
_LEAVING: Final = -1
# After these errors a member joins again.
_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
# The coordinator no longer knows a member that leaves.
_GONE: Final = _FENCED | {ErrorCode.GROUP_ID_NOT_FOUND}
_FIRST_INTERVAL_S: Final = 1.0
_REJOIN_S: Final = 0.1


class ShareMembership:
    """A member of a share group.

    Attributes:
        assigned: The partitions to read, which other members may read too.
        interval_s: Time until the next heartbeat.
        is_member: Whether the coordinator has accepted a heartbeat.
    """

    __slots__ = (
        "_client",
        "_epoch",
        "_topics",
        "assigned",
        "group",
        "interval_s",
        "is_member",
        "member_id",
    )

    def __init__(self, client: KafkaClient, group: str, topics: Sequence[str]) -> None:
        """Choose a member id; nothing is sent yet."""
        self.group = group
        # As Kafka's Uuid.toString.
        self.member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        self.assigned: frozenset[TopicIdPartition] = frozenset()
        self.interval_s = _FIRST_INTERVAL_S
        self.is_member = False
        # Separate connections: fetches delay other responses.
        self._client = client.apart()
        self._topics = sorted(set(topics))
        self._epoch = _JOINING

    def abort(self) -> None:
        """Close the connections."""
        self._client.abort()

    async def beat(self) -> bool:
        """Join, or send a heartbeat; return whether the assignment changed.

        Raises:
            ClientError: The coordinator refuses the member.
        """
        topics = self._topics if self._epoch == _JOINING else None
        answer = await self._heartbeat(self._epoch, topics)
        if answer.error_code in _FENCED:
            self._epoch = _JOINING
            self.interval_s = _REJOIN_S
            return self._assign(frozenset())
        check(answer.error_code, f"group {self.group} refuses this member", answer.error_message)
        self._epoch = answer.member_epoch
        self.interval_s = answer.heartbeat_interval_ms / 1000
        self.is_member = True
        if answer.assignment is None:
            return False
        return self._assign(
            frozenset(
                (topic.topic_id, partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            )
        )

    async def leave(self) -> None:
        """Leave, so that the group assigns the partitions to other members."""
        self.is_member = False
        answer = await self._heartbeat(_LEAVING, None)
        if answer.error_code not in _GONE:
            failure = f"group {self.group} cannot be left"
            check(answer.error_code, failure, answer.error_message)

    def _assign(self, assigned: frozenset[TopicIdPartition]) -> bool:
        is_changed = assigned != self.assigned
        self.assigned = assigned
        return is_changed

    async def _heartbeat(self, epoch: int, topics: list[str] | None) -> Any:
        body = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": epoch,
            "subscribed_topic_names": topics,
        }
        return await self._client.request_of_coordinator(
            self.group,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            body,
            error_of=lambda answer: int(answer.error_code),
        )
