"""What keeps a verb from being done, in words for whoever typed it.

A message says what went wrong and, where it is known, what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Iterable


class ClientError(Exception):
    """A cluster that can't be reached or that refuses.

    Attributes:
        code: The error code that it has answered; 0 if it is none of a cluster's answers.
        told: The answer's own message, if it had one.
    """

    def __init__(self, message: str, *, code: int = 0, told: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.told = told


class UnservedError(ClientError):
    """A broker that doesn't serve what it is asked for, being older or another."""


class FlagNames(NamedTuple):
    """The flags by which whoever reads a message can name another cluster, or ask it otherwise."""

    address: str
    tls: str
    trust: str
    login: str


# Of the verbs.
FLAG_NAMES: Final = FlagNames(
    address="-b HOST:PORT or WIREBROKER_BOOTSTRAP",
    tls="--tls or --tls-ca FILE",
    trust="--tls-ca FILE",
    login="--sasl-user NAME",
)


# What an answer says that will be otherwise in a moment: leaders and coordinators that move, or
# that were made just now.
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

# Where the name of a code is not enough, or an answer's own message is missing.
_MEANINGS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "that can't be the name of a topic",
    ErrorCode.OFFSET_OUT_OF_RANGE: "that offset is not in the partition",
    ErrorCode.MESSAGE_TOO_LARGE: "a record is larger than the topic's max.message.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members; stop its consumers first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read that topic; stop them first",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are not so many brokers",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that with the cluster",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "delegation.token.secret.key is not set: give every broker and controller the same one"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in by TLS or SASL, and not by a token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only its owner and its renewers may",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "this user may make none for that owner",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "tokens are of users alone: write User:NAME",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "it has expired",
}


def explained(code: int, message: str | None = None) -> str:
    """Return what an answer's error says: its own message, else what its code means."""
    name = error_name(code)
    if message:
        return f"{message.rstrip('.')} ({name})"
    meaning = _MEANINGS.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    return f"{meaning} ({name})" if meaning else name


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise what an answer's error code says, unless it is 0.

    Args:
        code: The answer's error_code.
        what: What could not be done, as `topic orders cannot be created`.
        message: The answer's error_message, if it has one.

    Raises:
        ClientError: The code is not 0.
    """
    if code:
        raise ClientError(f"{what}: {explained(code, message)}", code=code, told=message)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` if a known name is like this one, else nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - 5 ms, for mistakes alone

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
