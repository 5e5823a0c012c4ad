"""Kafka's sentences for the errors of share groups, where a response has room for one.

Source: Kafka's Errors.
"""

from __future__ import annotations

from typing import Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError

_TEXTS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing "
    "the request.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: "There is no leader for this topic-partition as we are in the "
    "middle of a leadership election.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.NETWORK_EXCEPTION: "The server disconnected before a response was received.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process "
    "requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.FENCED_STATE_EPOCH: "The coordinator rejected the request because the state epoch "
    "did not match.",
}


def error_text(error: ErrorCode) -> str | None:
    """Return the sentence of an error, its name if there is none; None for NONE."""
    if error is ErrorCode.NONE:
        return None
    return _TEXTS.get(error, error.name)


def error_fields(error: KafkaError) -> dict[str, Any]:
    """Return the fields of a response with an error and its sentence."""
    return {"error_code": error.code, "error_message": error.message or error_text(error.code)}
