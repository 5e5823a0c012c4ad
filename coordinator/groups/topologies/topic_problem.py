"""The statuses of a heartbeat's response, and what is wrong with the topics of a topology.

Source: Kafka's StreamsGroupHeartbeatResponse.Status, TopicConfigurationException.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class TopicStatus(IntEnum):
    """The statuses with their codes on the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6

    def with_detail(self, detail: str) -> dict[str, Any]:
        """Return a status of a response."""
        return {"status_code": int(self), "status_detail": detail}


class TopicProblemError(Exception):
    """Topics are missing or have the wrong partition count; members learn it and wait."""

    def __init__(self, status: TopicStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
