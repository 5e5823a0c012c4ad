"""This process as a member of a consumer group, by the classic protocol, which every Kafka speaks.

    join  ->  (heartbeat, commit)*  ->  join again when the group says so  ->  leave

Who leads shares the partitions out by range, which is what other clients' consumers offer too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import ClientError, check, explained
from wirebroker.client.groups.consumer_protocol import (
    assignment_bytes,
    assignment_of,
    subscription_bytes,
    subscription_of,
)
from wirebroker.client.groups.range_assignment import assigned_by_range
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.net.client.connection import Body

_PROTOCOL_TYPE: Final = "consumer"
_RANGE: Final = "range"
# Java's defaults: how long a silent member counts as there, and how long others wait for it.
_SESSION_MS: Final = 45_000
_REBALANCE_MS: Final = 60_000
# The last version that names topics by name.
_COMMIT_BY_NAME: Final = 9
# The last version that is about one member.
_LEAVE_OF_ONE: Final = 2
# What tells a member to join again; for the last it does so as a new one.
_JOIN_AGAIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


class GroupMembership:
    """A place in a group.

    Attributes:
        group: The group's id.
        is_member: Whether it has joined and not left since.
    """

    __slots__ = ("_client", "_generation", "_member_id", "_topics", "group", "is_member")

    def __init__(self, client: KafkaClient, group: str, topics: Sequence[str]) -> None:
        """Take the group and the topics that are wanted; nothing is asked yet."""
        self.group = group
        self.is_member = False
        # On connections of its own: while a group forms, its coordinator answers nothing else.
        self._client = client.apart().within(max(client.timeout_s, _REBALANCE_MS / 1000 + 10))
        self._topics = list(dict.fromkeys(topics))
        self._generation = -1
        self._member_id = ""

    def abort(self) -> None:
        """Close the connections."""
        self._client.abort()

    async def join(self) -> list[TopicPartition]:
        """Join, or join again, and return the partitions that this member is to read.

        Raises:
            ClientError: It is refused: the group has other members than consumers, or none that
                agree to share by range.
        """
        async for _ in self._client.tries():
            joined = await self._ask(ApiKey.JOIN_GROUP, self._join_body)
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                joined = await self._ask(ApiKey.JOIN_GROUP, self._join_body)
            if self._is_sent_back(joined.error_code):
                continue
            check(joined.error_code, f"group {self.group} cannot be joined")
            self._member_id = joined.member_id
            self._generation = joined.generation_id
            self.is_member = True
            shares = await self._shares(joined) if joined.leader == joined.member_id else {}
            synced = await self._ask(ApiKey.SYNC_GROUP, self._sync_body(shares))
            if self._is_sent_back(synced.error_code):
                continue
            check(synced.error_code, f"group {self.group} does not share partitions out")
            return assignment_of(bytes(synced.assignment))
        raise ClientError(f"group {self.group} does not come to rest")

    async def goes_on(self) -> bool:
        """Say that this member is alive; return whether what it reads is still its own.

        Raises:
            ClientError: The coordinator does not answer, or refuses.
        """
        body = {
            "group_id": self.group,
            "generation_id": self._generation,
            "member_id": self._member_id,
        }
        answer = await self._ask(ApiKey.HEARTBEAT, body)
        if self._is_sent_back(answer.error_code):
            return False
        check(answer.error_code, f"group {self.group} takes no heartbeat")
        return True

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> str | None:
        """Commit the offsets to go on from.

        Returns:
            What is wrong if the group has gone on without this member; None if it is done.

        Raises:
            ClientError: It is refused for another reason.
        """
        topics: dict[str, list[dict[str, int]]] = defaultdict(list)
        for place, offset in offsets.items():
            row = {"partition_index": place.partition, "committed_offset": offset}
            topics[place.topic].append(row)
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
            error_of=_first_error,
            at_most=_COMMIT_BY_NAME,
        )
        code = _first_error(answer)
        if code in _JOIN_AGAIN:
            return explained(code)
        check(code, f"offsets of group {self.group} cannot be committed")
        return None

    async def leave(self) -> None:
        """Leave the group, so that its others go on at once.

        Raises:
            ClientError: The coordinator does not answer.
        """
        self.is_member = False
        body = {"group_id": self.group, "member_id": self._member_id}
        await self._ask(ApiKey.LEAVE_GROUP, body, at_most=_LEAVE_OF_ONE)

    def _is_sent_back(self, code: int) -> bool:
        if code not in _JOIN_AGAIN:
            return False
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        return True

    async def _ask(self, key: ApiKey, body: Body, *, at_most: int | None = None) -> Any:
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
                {"member_id": member, "assignment": assignment_bytes(places)}
                for member, places in shares.items()
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
        """Share the partitions out, as the leader."""
        wanted = {each.member_id: subscription_of(bytes(each.metadata)) for each in joined.members}
        topics = sorted({topic for each in wanted.values() for topic in each})
        answer = await self._client.metadata(topics)
        counts = {each.name: len(each.partitions) for each in answer.topics if not each.error_code}
        return assigned_by_range(wanted, counts)


def _error_of(answer: Any) -> int:
    return int(answer.error_code)


def _first_error(answer: Any) -> int:
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    return next((int(code) for code in codes if code), 0)
