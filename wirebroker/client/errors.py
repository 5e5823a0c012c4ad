"""Errors of the client, with messages for the user."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.text import counted
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Iterable


class ClientError(Exception):
    """A cluster that cannot be reached or returns an error.

    `code` is the response's error code, 0 without a response; `told` is its message or None.
    """

    def __init__(self, message: str, *, code: int = 0, broker_message: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.told = broker_message


class NoResponseError(ClientError):
    """A broker that does not run, cannot be reached, or does not respond in time."""


class TooLongError(ClientError):
    """A response that is longer than the client accepts."""


class UnservedError(ClientError):
    """A request that the broker does not serve."""


class FlagNames(NamedTuple):
    """Flags that messages suggest to the user, and the kind of node at the addresses."""

    address: str
    tls: str
    trust: str
    login: str
    node: str = "broker"


FLAG_NAMES: Final = FlagNames(
    address="-b HOST:PORT or WIREBROKER_BOOTSTRAP",
    tls="--tls or --tls-ca FILE",
    trust="--tls-ca FILE",
    login="--sasl-user NAME",
)
CONTROLLER_FLAG_NAMES: Final = FLAG_NAMES._replace(
    address="--bootstrap-controller HOST:PORT", node="controller"
)


# Retriable errors: leaders and coordinators that move or were just created.
PASSING: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
    }
)

# Comparing a name with thousands of others, or a very long name, takes seconds.
_MOST_CANDIDATES: Final = 1000
_MOST_SIMILAR_CHARACTERS: Final = 255

# For codes whose names do not suffice, and responses without a message.
_MEANINGS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic name is invalid",
    ErrorCode.OFFSET_OUT_OF_RANGE: "that offset is not in the partition",
    ErrorCode.MESSAGE_TOO_LARGE: "a record is larger than the topic's max.message.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members; stop its consumers first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read that topic; stop them first",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are not enough brokers",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that with the cluster",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "delegation.token.secret.key is not set: give every broker and controller the same one"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in with TLS or SASL, not with a token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only its owner and renewers may do that",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: (
        "this user may not create tokens for that owner"
    ),
    ErrorCode.INVALID_PRINCIPAL_TYPE: "only users can own tokens: write User:NAME",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "it has expired",
}


def explained(code: int, message: str | None = None) -> str:
    """Return the text of an error: the response's message, else the code's meaning."""
    name = error_name(code)
    if message:
        return f"{message.rstrip('.')} ({name})"
    meaning = _MEANINGS.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    return f"{meaning} ({name})" if meaning else name


def check(code: int, failure: str, message: str | None = None) -> None:
    """Raise a ClientError if a response's code is not 0.

    `failure` is the failure in words, such as `topic orders cannot be created`.
    """
    if code:
        raise ClientError(
            f"{failure}: {explained(code, message)}", code=code, broker_message=message
        )


def check_all(results: Iterable[tuple[int, str, str | None]], unit: str, done: str) -> None:
    """Raise the first error of several results, with the number of those without one.

    Args:
        results: Code, failure in words and message, as `check` takes them.
        unit: A result without an error, such as `other move`.
        done: A word for its success, such as `started`.
    """
    rows = list(results)
    count = sum(not code for code, *_ in rows)
    for code, failure, message in rows:
        try:
            check(code, failure, message)
        except ClientError as error:
            raise with_done(error, count, unit, done) from None


def with_done(error: ClientError, count: int, unit: str, done: str) -> ClientError:
    """Return the error of a change that failed after some of its parts were made.

    Args:
        error: The error of the part that failed.
        count: The number of parts that were made.
        unit: The kind of part, such as `broker`.
        done: The participle for these parts, such as `throttled before`.
    """
    return with_text(error, f"{counted(count, unit)} {done}") if count else error


def with_text(error: ClientError, text: str) -> ClientError:
    """Return an error with another clause."""
    return ClientError(f"{error}; {text}", code=error.code, broker_message=error.told)


def first_partition_error(answer: Any) -> int:
    """Return the first error code of a response's partitions, or 0."""
    codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    return next((int(code) for code in codes if code), 0)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean …?` for a similar one of the first 1,000 candidates, or no text."""
    if len(name) > _MOST_SIMILAR_CHARACTERS:
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - 5 ms, for mistakes alone

    matches = get_close_matches(name, list(islice(candidates, _MOST_CANDIDATES)), n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
