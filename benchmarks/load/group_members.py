"""Members of consumer, share and streams groups that send heartbeats, as raw requests.

A member joins with its first heartbeat, and reports what it was assigned until nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.protocol.raw_client import RawClient

TOPIC: Final = "t"
_REBALANCE_MS: Final = 300_000
_LOADING: Final = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


class GroupMember:
    """A member; each kind of group has its own requests."""

    key: ApiKey
    version: int

    def __init__(self, group: str, member_id: str) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self._assigned: Any = None
        self._reports = False

    @property
    def is_at_rest(self) -> bool:
        return self.epoch > 0 and not self._reports

    async def beat(self, client: RawClient) -> None:
        """Send a heartbeat, and follow its response."""
        body: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
        }
        if not self.epoch:
            body |= self._joining()
        elif self._reports:
            body |= self._owned()
        answer = await client.ask(self.key, self.version, body)
        error = ErrorCode(answer.error_code)
        if error in _LOADING:
            return
        assert error is ErrorCode.NONE, answer
        assigned = self._assignment(answer)
        self._reports = assigned is not None or answer.member_epoch != self.epoch
        self.epoch = answer.member_epoch
        if assigned is not None:
            self._assigned = assigned

    def _joining(self) -> Mapping[str, Any]:
        """Return the fields of the first heartbeat."""
        raise NotImplementedError

    def _owned(self) -> Mapping[str, Any]:
        """Return the fields that report the assignment."""
        return {}

    def _assignment(self, answer: Any) -> Any:
        """Return a response's assignment, None if unchanged."""
        raise NotImplementedError


class ConsumerMember(GroupMember):
    """A member of a consumer group (KIP-848)."""

    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    version = 1

    def _joining(self) -> Mapping[str, Any]:
        return {
            "rebalance_timeout_ms": _REBALANCE_MS,
            "subscribed_topic_names": [TOPIC],
            "topic_partitions": [],
        }

    def _owned(self) -> Mapping[str, Any]:
        return {"topic_partitions": self._assigned or []}

    def _assignment(self, answer: Any) -> Any:
        if answer.assignment is None:
            return None
        return [
            {"topic_id": topic.topic_id, "partitions": list(topic.partitions)}
            for topic in answer.assignment.topic_partitions
        ]


class ShareMember(GroupMember):
    """A member of a share group (KIP-932); it does not report its partitions."""

    key = ApiKey.SHARE_GROUP_HEARTBEAT
    version = 1

    def _joining(self) -> Mapping[str, Any]:
        return {"subscribed_topic_names": [TOPIC]}

    def _assignment(self, answer: Any) -> Any:
        return answer.assignment


class StreamsMember(GroupMember):
    """A member of a streams group (KIP-1071) with one subtopology."""

    key = ApiKey.STREAMS_GROUP_HEARTBEAT
    version = 0

    def _joining(self) -> Mapping[str, Any]:
        subtopology = {"subtopology_id": "0", "source_topics": [TOPIC]}
        return {
            "rebalance_timeout_ms": _REBALANCE_MS,
            "topology": {"epoch": 0, "subtopologies": [subtopology]},
            "process_id": self.member_id,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "client_tags": [],
        }

    def _owned(self) -> Mapping[str, Any]:
        return {"active_tasks": self._assigned or [], "standby_tasks": [], "warmup_tasks": []}

    def _assignment(self, answer: Any) -> Any:
        if answer.active_tasks is None:
            return None
        return [
            {"subtopology_id": tasks.subtopology_id, "partitions": list(tasks.partitions)}
            for tasks in answer.active_tasks
        ]


KINDS: Final[Mapping[str, type[GroupMember]]] = {
    "consumer": ConsumerMember,
    "share": ShareMember,
    "streams": StreamsMember,
}
