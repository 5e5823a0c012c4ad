"""A job's rights at the broker (table: spark_it/README.md), and errors for missing ones.

Brokers report a login's operations on topics and groups (KIP-430), so a job checks these before it
starts. Source: Kafka's KafkaApis.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from wirebroker.pipelines.job.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WAIT_S: Final = 20.0
_USED: Final = frozenset({"read", "write"})
# Refusals in errors of Spark and its tasks, by client.
_OF_LIBRDKAFKA: Final = re.compile(r"\bcode=(TOPIC|GROUP|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED\b")
_OF_JAVA: Final = re.compile(
    r"\b(Topic|Group)AuthorizationException: "
    r"(?:Not authorized to access [a-z]+: \[?([^\s\],]+)|Topic authorization failed)"
)
# In Java's stack trace during a batch.
_IN_A_BATCH: Final = "ForeachBatchSink"
_USER_OF_JAVA: Final = re.compile(r'\busername="([^"]+)"')
_REFUSALS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


class Delivered(Protocol):
    """The fields of delivery.Target that this module needs."""

    @property
    def kafka(self) -> Mapping[str, str]:
        """Client settings."""

    @property
    def job(self) -> str:
        """The job's name."""

    @property
    def topic(self) -> str:
        """The topic for records."""

    @property
    def dead_letters(self) -> str:
        """The topic for dead letters, or ""."""


class RightError(PipelineError):
    """The login lacks a right that the job needs."""


class Right(NamedTuple):
    """An operation on a resource, as `wirebroker acl create` names them."""

    operation: str
    resource: str
    name: str
    is_prefixed: bool = False

    def told(self, table: str, user: str) -> str:
        """Return the message that the right is missing, with the command that grants it.

        `table` is the job file's table with the login.
        """
        principal = f"User:{user or 'NAME'}"
        wildcard = "*" if self.is_prefixed else ""
        prefixed = " --prefixed" if self.is_prefixed else ""
        return (
            f"the login of [{table}] may not {self.operation} {self.resource} "
            f"{self.name}{wildcard}: "
            f"wirebroker acl create --allow {principal} --operation {self.operation} "
            f"--{self.resource} {self.name}{prefixed}"
        )


def error_of(rights: Iterable[Right], kafka: Mapping[str, str]) -> RightError:
    """Return the error for missing rights of the login of [kafka]."""
    user = kafka.get("sasl.username", "")
    return RightError("\n".join(right.told("kafka", user) for right in rights))


def is_refusal(error: KafkaError) -> bool:
    """Return whether an error means a missing right."""
    return error.code() in _REFUSALS


def check_rights(target: Delivered) -> None:
    """Check a job's rights; raise RightError with all missing ones."""
    missing = _missing(target)
    if missing:
        raise error_of(missing, target.kafka)


def check_writes(kafka: Mapping[str, str], topics: Iterable[str]) -> None:
    """Check the right to write to topics; raise RightError with all missing ones."""
    missing = _missing_of_topics(quiet_admin(kafka), dict.fromkeys(topics, ("write",)))
    if missing:
        raise error_of(missing, kafka)


def refusal_of(
    error: Exception, target: Delivered, reader: Mapping[str, Any], topics: Sequence[str] = ()
) -> RightError | None:
    """Return an error for the missing right that caused a failure, or None.

    `topics` are the reader's: the stream, then the topic read for each batch.
    """
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    of_java = _OF_JAVA.search(text)
    if of_java and (of_java[2] or topics):
        login = _USER_OF_JAVA.search(str(reader.get("kafka.sasl.jaas.config", "")))
        user = login[1] if login else target.kafka.get("sasl.username", "")
        # Java names no topic when it lists partitions.
        name = of_java[2] or topics[-1 if _IN_A_BATCH in text else 0]
        return RightError(Right("read", of_java[1].lower(), name).told("reader", user))
    refused = _OF_LIBRDKAFKA.search(text)
    if refused is None:
        return None
    if refused[1] == "TRANSACTIONAL_ID":
        prefix = Right("write", "transactional-id", f"{target.job}.{target.topic}.", True)
        return error_of([prefix], target.kafka)
    # The right was granted meanwhile, or the broker does not report rights.
    likely = {
        "TOPIC": Right("write", "topic", target.topic),
        "GROUP": Right("read", "group", target.job),
    }
    return error_of(_missing(target) or [likely[refused[1]]], target.kafka)


def _missing(target: Delivered) -> list[Right]:
    required: dict[str, tuple[str, ...]] = {target.topic: ("read", "write")}
    if target.dead_letters:
        required[target.dead_letters] = ("write",)
    admin = quiet_admin(target.kafka)
    groups = admin.describe_consumer_groups(
        [target.job], include_authorized_operations=True, request_timeout=_WAIT_S
    )
    missing = _missing_of_topics(admin, required)
    if "read" not in _allowed(groups[target.job]):
        missing.append(Right("read", "group", target.job))
    return missing


def _missing_of_topics(admin: AdminClient, required: Mapping[str, tuple[str, ...]]) -> list[Right]:
    futures = admin.describe_topics(
        TopicCollection(list(required)), include_authorized_operations=True, request_timeout=_WAIT_S
    )
    missing: list[Right] = []
    for name, future in futures.items():
        allowed = _allowed(future)
        missing += (
            Right(operation, "topic", name)
            for operation in required[name]
            if operation not in allowed
        )
    return missing


def quiet_admin(kafka: Mapping[str, str]) -> AdminClient:
    """Return a client without librdkafka's messages below warnings."""
    return AdminClient({"log_level": 4, **kafka})


def _allowed(future: Any) -> frozenset[str]:
    """Return the allowed operations; read and write if the broker does not report them.

    This happens while Apache Kafka starts, or if the topic is missing.
    """
    try:
        operations: list[AclOperation] = future.result().authorized_operations
    except KafkaException as error:
        return frozenset() if is_refusal(error.args[0]) else _USED
    if not operations or AclOperation.ALL in operations:
        return _USED
    return frozenset(operation.name.lower() for operation in operations)
