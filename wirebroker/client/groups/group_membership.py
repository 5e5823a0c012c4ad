"""Membership in a consumer group, by the classic protocol, which every Kafka serves.

    join  ->  (heartbeat, commit)*  ->  join again after a rebalance  ->  leave

As leader it assigns by range, which other clients' consumers offer too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import ClientError, check, explained, first_partition_error
from wirebroker.client.groups.consumer_protocol import (
    assignment_bytes,
    assignment_of,
    subscription_bytes,
    subscription_of,
)
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.net.client.connection import Body

_PROTOCOL_TYPE: Final = "consumer"
_RANGE: Final = "range"
# Java's defaults for session.timeout.ms and the wait for other members.
_SESSION_MS: Final = 45_000
_REBALANCE_MS: Final = 60_000
# Last version with topic names.
_COMMIT_BY_NAME: Final = 9
# Last version for one member.
_LEAVE_OF_ONE: Final = 2
# The member joins again; after the last one, as a new member.
_JOIN_AGAIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


class GroupMembership:
    """A member of a group."""

    __slots__ = ("_client", "_generation", "_member_id", "_topics", "group", "is_member")

    def __init__(self, client: KafkaClient, group: str, topics: Sequence[str]) -> None:
        """Store the topics; nothing is sent yet."""
        self.group = group
        self.is_member = False
        # Separate connections: a coordinator delays other responses while the group forms.
        self._client = client.apart().within(max(client.timeout_s, _REBALANCE_MS / 1000 + 10))
        self._topics = list(dict.fromkeys(topics))
        self._generation = -1
        self._member_id = ""

    def abort(self) -> None:
        """Close the connections."""
        self._client.abort()

    async def join(self) -> list[TopicPartition]:
        """Join or rejoin, and return the assigned partitions.

        Raises:
            ClientError: The group does not support range assignment, or is no consumer group.
        """
        async for _ in self._client.tries():
            joined = await self._request(ApiKey.JOIN_GROUP, self._join_body)
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                joined = await self._request(ApiKey.JOIN_GROUP, self._join_body)
            if self._is_sent_back(joined.error_code):
                continue
            check(joined.error_code, f"group {self.group} cannot be joined")
            self._member_id = joined.member_id
            self._generation = joined.generation_id
            self.is_member = True
            shares = await self._shares(joined) if joined.leader == joined.member_id else {}
            synced = await self._request(ApiKey.SYNC_GROUP, self._sync_body(shares))
            if self._is_sent_back(synced.error_code):
                continue
            check(synced.error_code, f"group {self.group} cannot assign partitions")
            return assignment_of(bytes(synced.assignment))
        raise ClientError(f"group {self.group} does not stop rebalancing")

    async def goes_on(self) -> bool:
        """Send a heartbeat; return whether the assignment is still valid."""
        body = {
            "group_id": self.group,
            "generation_id": self._generation,
            "member_id": self._member_id,
        }
        answer = await self._request(ApiKey.HEARTBEAT, body)
        if self._is_sent_back(answer.error_code):
            return False
        check(answer.error_code, f"group {self.group} rejects the heartbeat")
        return True

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> str | None:
        """Commit offsets; return an error if the group continued without this member.

        Raises:
            ClientError: The coordinator returns another error.
        """
        topics: dict[str, list[dict[str, int]]] = defaultdict(list)
        for partition, offset in offsets.items():
            row = {"partition_index": partition.partition, "committed_offset": offset}
            topics[partition.topic].append(row)
        body = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self._generation,
            "member_id": self._member_id,
            "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
        }
        answer = await self._client.request_of_coordinator(
            self.group,
            ApiKey.OFFSET_COMMIT,
            body,
            error_of=first_partition_error,
            at_most=_COMMIT_BY_NAME,
        )
        code = first_partition_error(answer)
        if code in _JOIN_AGAIN:
            return explained(code)
        check(code, f"offsets of group {self.group} cannot be committed")
        return None

    async def leave(self) -> None:
        """Leave, so that the other members continue immediately."""
        self.is_member = False
        body = {"group_id": self.group, "member_id": self._member_id}
        await self._request(ApiKey.LEAVE_GROUP, body, at_most=_LEAVE_OF_ONE)

    def _is_sent_back(self, code: int) -> bool:
        if code not in _JOIN_AGAIN:
            return False
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        return True

    async def _request(self, key: ApiKey, body: Body, *, at_most: int | None = None) -> Any:
        return await self._client.request_of_coordinator(
            self.group, key, body, error_of=_error_of, at_most=at_most
        )

    def _join_body(self, version: int) -> dict[str, Any]:
        protocol = {"name": _RANGE, "metadata": subscription_bytes(self._topics)}
        body = {
            "group_id": self.group,
            "session_timeout_ms": _SESSION_MS,
            "member_id": self._member_id,
            "protocol_type": _PROTOCOL_TYPE,
            "protocols": [protocol],
        }
        return body | ({"rebalance_timeout_ms": _REBALANCE_MS} if version else {})

    def _sync_body(self, shares: Mapping[str, Sequence[TopicPartition]]) -> Body:
        def body(version: int) -> dict[str, Any]:
            rows = [
                {"member_id": member, "assignment": assignment_bytes(partitions)}
                for member, partitions in shares.items()
            ]
            names = {"protocol_type": _PROTOCOL_TYPE, "protocol_name": _RANGE}
            return {
                "group_id": self.group,
                "generation_id": self._generation,
                "member_id": self._member_id,
                "assignments": rows,
            } | (names if version >= 5 else {})

        return body

    async def _shares(self, joined: Any) -> dict[str, list[TopicPartition]]:
        """Assign the partitions, as the leader."""
        subscriptions = {
            member.member_id: subscription_of(bytes(member.metadata)) for member in joined.members
        }
        topics = sorted(
            {topic for subscription in subscriptions.values() for topic in subscription}
        )
        answer = await self._client.metadata(topics)
        counts = {
            topic.name: len(topic.partitions) for topic in answer.topics if not topic.error_code
        }
        return assigned_by_range(subscriptions, counts)


def _error_of(answer: Any) -> int:
    return int(answer.error_code)


# Assignment by range, by the leader


def assigned_by_range(
    subscriptions: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign partitions of topics (missing topics have none), and return them by member id."""
    shares: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic in sorted({topic for topics in subscriptions.values() for topic in topics}):
        members = sorted(member for member, topics in subscriptions.items() if topic in topics)
        per_member, remainder = divmod(partition_counts.get(topic, 0), len(members))
        first = 0
        for index, member in enumerate(members):
            last = first + per_member + (index < remainder)
            shares[member] += [TopicPartition(topic, number) for number in range(first, last)]
            first = last
    return shares
