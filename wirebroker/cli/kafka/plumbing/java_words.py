"""Java's texts: names of errors, and replacement characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.errors import error_name

if TYPE_CHECKING:
    from wirebroker.client.errors import ClientError

# A surrogate in UTF-8: one malformed character in Java, several in Python.
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_PACKAGE: Final = "org.apache.kafka.common.errors"

# The name, and the default message.
_WORDS: Final[dict[int, tuple[str, str]]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "OffsetOutOfRangeException",
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed"
        " to it.",
    ),
    ErrorCode.POLICY_VIOLATION: (
        "PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    ErrorCode.KAFKA_STORAGE_ERROR: (
        "KafkaStorageException",
        "Disk error when trying to access log file on the disk.",
    ),
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: (
        "PreferredLeaderNotAvailableException",
        "The preferred leader was not available.",
    ),
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "EligibleLeadersNotAvailableException",
        "Eligible topic partition leaders are not available.",
    ),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        "TopicAuthorizationException",
        "Topic authorization failed.",
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        "GroupAuthorizationException",
        "Group authorization failed.",
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "ClusterAuthorizationException",
        "Cluster authorization failed.",
    ),
    ErrorCode.INVALID_GROUP_ID: ("InvalidGroupIdException", "The group id is invalid."),
    ErrorCode.GROUP_DELETION_FAILED: (
        "GroupDeletionFailedException",
        "DeleteGroups could not complete; see the error message on the per-group result for"
        " details.",
    ),
    ErrorCode.UNSUPPORTED_VERSION: (
        "UnsupportedVersionException",
        "The version of API is not supported.",
    ),
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
}


def thrown(error: ClientError) -> str:
    """Return class and message of an error, as Java prints it."""
    return thrown_for(error.code, error.told or (None if error.code in _WORDS else str(error)))


def message_of(error: ClientError) -> str:
    """Return the message of an error, as Java's exceptions have it."""
    return error.told or (meaning(error.code) if error.code in _WORDS else str(error))


def thrown_for(code: int, message: str | None = None) -> str:
    """Return an error code as Java prints it, with the response's message if it has one."""
    words = _WORDS.get(code)
    if words is None:
        return f"{_PACKAGE}.ApiException: {message or error_name(code)}"
    return f"{_PACKAGE}.{words[0]}: {message or words[1]}"


def thrown_class(code: int) -> str:
    """Return an error code's Java class."""
    return thrown_for(code).partition(":")[0]


def meaning(code: int) -> str:
    """Return the message of Java's clients."""
    words = _WORDS.get(code)
    return words[1] if words else error_name(code)


def with_replacements(data: bytes) -> bytes:
    """Decode UTF-8 with the replacement characters of Java."""
    if data.isascii():
        return data
    return _SURROGATE.sub("\ufffd".encode(), data).decode(errors="replace").encode()
