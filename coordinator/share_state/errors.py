"""The errors of share coordinators, with Kafka's messages.

Source: Kafka's Errors.
"""

from __future__ import annotations

from typing import Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state.state import StateError

_MESSAGES: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.NETWORK_EXCEPTION: "The server disconnected before a response was received.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.FENCED_LEADER_EPOCH: (
        "The leader epoch in the request is older than the epoch on the broker."
    ),
    ErrorCode.FENCED_STATE_EPOCH: (
        "The coordinator rejected the request because the state epoch did not match."
    ),
}


def message_of(code: ErrorCode) -> str:
    """Return Kafka's message of an error."""
    return _MESSAGES.get(code, code.name)


def state_error(code: ErrorCode, message: str | None = None) -> StateError:
    """Return the error of a partition, with its usual message unless another is given."""
    return StateError(code, message_of(code) if message is None else message)
