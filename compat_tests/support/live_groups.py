"""Groups of each kind with members that stay, whose assignments are settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from compat_tests.support.raw_requests import Requests

# Kafka 4.3 has version 0 of the last one.
_VERSIONS: Final = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
}
_LEAVING: Final = -1
_WAIT_S: Final = 30.0
_REBALANCE_MS: Final = 60_000
_TEMPORARY: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
# Sessions must outlast a test of several scripts.
SETTINGS: Final = {
    f"group.{kind}.{name}": "120000"
    for kind in ("consumer", "share", "streams")
    for name in ("session.timeout.ms", "max.session.timeout.ms")
} | {
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}


class LiveMember:
    """A member that sends heartbeats when told to."""

    def __init__(
        self, requests: Requests, key: ApiKey, group: str, name: str, fields: dict[str, Any]
    ) -> None:
        # What the coordinator assigned last, as the member reports it.
        self._owned: dict[str, Any] = {}
        self._is_assigned = False
        self._requests = requests
        self._key = key
        self._names = {"group_id": group, "member_id": name}
        self._epoch = 0
        eventually(lambda: self._send(0, fields), timeout_s=_WAIT_S)

    def beat(self, **fields: Any) -> int:
        """Send a heartbeat, and return the member's epoch."""
        assert self._send(self._epoch, {**self._owned, **fields})
        return self._epoch

    def wait_for_assignment(self) -> None:
        """Send heartbeats until the coordinator has assigned partitions or tasks."""

        def is_assigned() -> bool:
            self.beat()
            return self._is_assigned

        eventually(is_assigned, timeout_s=_WAIT_S)

    def leave(self) -> None:
        assert self._send(_LEAVING, {})

    def _send(self, epoch: int, fields: dict[str, Any]) -> bool:
        body = {**self._names, "member_epoch": epoch, **fields}
        response = self._requests.try_ask(self._key, _VERSIONS[self._key], body)
        if response.error_code in _TEMPORARY:
            return False
        assert response.error_code == ErrorCode.NONE, response
        self._epoch = response.member_epoch
        self._own(response)
        return True

    def _own(self, response: Any) -> None:
        if self._key is ApiKey.STREAMS_GROUP_HEARTBEAT:
            if response.active_tasks is not None:
                self._is_assigned = bool(response.active_tasks)
        elif response.assignment is not None:
            self._is_assigned = bool(response.assignment.topic_partitions)
        if self._key is ApiKey.CONSUMER_GROUP_HEARTBEAT and response.assignment is not None:
            rows = response.assignment.topic_partitions
            self._owned = {"topic_partitions": [row.as_dict() for row in rows]}
        if self._key is ApiKey.STREAMS_GROUP_HEARTBEAT and response.active_tasks is not None:
            for kind in ("active_tasks", "standby_tasks", "warmup_tasks"):
                self._owned[kind] = [row.as_dict() for row in getattr(response, kind)]


def share_member(requests: Requests, group: str, name: str, topics: list[str]) -> LiveMember:
    fields = {"subscribed_topic_names": topics}
    return LiveMember(requests, ApiKey.SHARE_GROUP_HEARTBEAT, group, name, fields)


def consumer_member(
    requests: Requests, group: str, name: str, topics: list[str], **more: Any
) -> LiveMember:
    fields = {
        "subscribed_topic_names": topics,
        "topic_partitions": [],
        "rebalance_timeout_ms": _REBALANCE_MS,
        **more,
    }
    return LiveMember(requests, ApiKey.CONSUMER_GROUP_HEARTBEAT, group, name, fields)


def streams_member(requests: Requests, group: str, name: str, source: str) -> LiveMember:
    """Join a group whose application counts the records of a topic by key."""
    stores = {
        "name": f"{group}-store-changelog",
        "partitions": 0,
        "replication_factor": 1,
        "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
    }
    by_key = {
        "name": f"{group}-by-key-repartition",
        "partitions": 2,
        "replication_factor": 1,
        "topic_configs": [],
    }
    subtopologies = [
        {
            "subtopology_id": "0",
            "source_topics": [source],
            "repartition_sink_topics": [by_key["name"]],
            "copartition_groups": [{"source_topics": [0]}],
        },
        {
            "subtopology_id": "1",
            "repartition_source_topics": [by_key],
            "state_changelog_topics": [stores],
            "copartition_groups": [{"repartition_source_topics": [0]}],
        },
    ]
    fields = {
        "rebalance_timeout_ms": _REBALANCE_MS,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": f"process-of-{name}",
        "client_tags": [],
        "topology": {"epoch": 0, "subtopologies": subtopologies},
    }
    return LiveMember(requests, ApiKey.STREAMS_GROUP_HEARTBEAT, group, name, fields)
