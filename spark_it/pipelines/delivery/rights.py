"""Rights at the broker (ACLs): whether a job has what it needs, and how what is missing is told.

    topic of the job                 Read (its positions are kept for it), Write
    topic of its dead letters        Write
    group JOB                        Read
    transactional ids JOB.TOPIC.…    Write
    topics that are read             Describe by the login of [kafka], Read by that of [reader]

Brokers tell what a login may do with a topic or a group (KIP-430), so those are looked at before
anything is begun; of transactional ids, and of what is taken away later, a refusal tells.

Source: the rights of each request, Kafka's KafkaApis.
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
# How refusals stand in what Spark and its tasks report, by both kinds of clients.
_OF_LIBRDKAFKA: Final = re.compile(r"\bcode=(TOPIC|GROUP|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED\b")
_OF_JAVA: Final = re.compile(
    r"\b(Topic|Group)AuthorizationException: "
    r"(?:Not authorized to access [a-z]+: \[?([^\s\],]+)|Topic authorization failed)"
)
# Of Java's stack while a batch is done.
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
    """What is known of a job that delivers into a topic: delivery.Target."""

    @property
    def kafka(self) -> Mapping[str, str]:
        """Settings of clients."""

    @property
    def job(self) -> str:
        """Its name."""

    @property
    def topic(self) -> str:
        """For its records."""

    @property
    def dead_letters(self) -> str:
        """The topic for what cannot be one; "": none."""


class RightError(PipelineError):
    """The broker refuses what the job has to do."""


class Right(NamedTuple):
    """An operation on a resource.

    Attributes:
        operation: As `wirebroker acl create --operation` has it.
        resource: Likewise, a flag: topic, group or transactional-id.
        name: Of the resource.
        is_prefixed: Whether all names are meant that begin so.
    """

    operation: str
    resource: str
    name: str
    is_prefixed: bool = False

    def told(self, table: str, user: str) -> str:
        """Return that it is missing, and what gives it.

        Args:
            table: Of the job's file, which has the login.
            user: The login's name; "": it is not known.
        """
        principal = f"User:{user or 'NAME'}"
        these = "*" if self.is_prefixed else ""
        prefixed = " --prefixed" if self.is_prefixed else ""
        return (
            f"the login of [{table}] may not {self.operation} {self.resource} {self.name}{these}: "
            f"wirebroker acl create --allow {principal} --operation {self.operation} "
            f"--{self.resource} {self.name}{prefixed}"
        )


def error_of(rights: Iterable[Right], kafka: Mapping[str, str]) -> RightError:
    """Return the error of rights that the login of [kafka] lacks, a line for each."""
    user = kafka.get("sasl.username", "")
    return RightError("\n".join(each.told("kafka", user) for each in rights))


def is_refusal(error: KafkaError) -> bool:
    """Tell whether a right is what is missing."""
    return error.code() in _REFUSALS


def check_rights(target: Delivered) -> None:
    """See that a job may do with its topics and its group what it has to.

    Raises:
        RightError: It may not; all that is missing is told.
    """
    missing = _missing(target)
    if missing:
        raise error_of(missing, target.kafka)


def check_writes(kafka: Mapping[str, str], topics: Iterable[str]) -> None:
    """See that a login may write to topics.

    Raises:
        RightError: It may not; all that is missing is told.
    """
    missing = _missing_of_topics(quiet_admin(kafka), dict.fromkeys(topics, ("write",)))
    if missing:
        raise error_of(missing, kafka)


def refusal_of(
    error: Exception, target: Delivered, reader: Mapping[str, Any], topics: Sequence[str] = ()
) -> RightError | None:
    """Return what a failure of a job comes to if a right is what it lacked, else None.

    Args:
        error: As Spark reports it, or a client.
        target: Where the job's records go.
        reader: The table [reader].
        topics: What the reader reads: a stream, and then what is read for each batch.
    """
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    of_java = _OF_JAVA.search(text)
    if of_java and (of_java[2] or topics):
        login = _USER_OF_JAVA.search(str(reader.get("kafka.sasl.jaas.config", "")))
        user = login[1] if login else target.kafka.get("sasl.username", "")
        # Where partitions are listed, Java names no topic.
        name = of_java[2] or topics[-1 if _IN_A_BATCH in text else 0]
        return RightError(Right("read", of_java[1].lower(), name).told("reader", user))
    refused = _OF_LIBRDKAFKA.search(text)
    if refused is None:
        return None
    if refused[1] == "TRANSACTIONAL_ID":
        prefix = Right("write", "transactional-id", f"{target.job}.{target.topic}.", True)
        return error_of([prefix], target.kafka)
    # Else it has come back meanwhile, or the broker does not tell of rights.
    likely = {
        "TOPIC": Right("write", "topic", target.topic),
        "GROUP": Right("read", "group", target.job),
    }
    return error_of(_missing(target) or [likely[refused[1]]], target.kafka)


def _missing(target: Delivered) -> list[Right]:
    wanted: dict[str, tuple[str, ...]] = {target.topic: ("read", "write")}
    if target.dead_letters:
        wanted[target.dead_letters] = ("write",)
    admin = quiet_admin(target.kafka)
    groups = admin.describe_consumer_groups(
        [target.job], include_authorized_operations=True, request_timeout=_WAIT_S
    )
    missing = _missing_of_topics(admin, wanted)
    if "read" not in _allowed(groups[target.job]):
        missing.append(Right("read", "group", target.job))
    return missing


def _missing_of_topics(admin: AdminClient, wanted: Mapping[str, tuple[str, ...]]) -> list[Right]:
    asked = admin.describe_topics(
        TopicCollection(list(wanted)), include_authorized_operations=True, request_timeout=_WAIT_S
    )
    missing: list[Right] = []
    for name, future in asked.items():
        allowed = _allowed(future)
        missing += (Right(each, "topic", name) for each in wanted[name] if each not in allowed)
    return missing


def quiet_admin(kafka: Mapping[str, str]) -> AdminClient:
    """Return a client that tells warnings: below them librdkafka tells of its own queues."""
    return AdminClient({"log_level": 4, **kafka})


def _allowed(future: Any) -> frozenset[str]:
    """Return which operations are allowed; reading and writing, where a broker does not tell.

    It may not know yet whose group it is (a start of Apache Kafka), a topic may be to be made: what
    is missing then is told when it is met.
    """
    try:
        told: list[AclOperation] = future.result().authorized_operations
    except KafkaException as error:
        return frozenset() if is_refusal(error.args[0]) else _USED
    if not told or AclOperation.ALL in told:
        return _USED
    return frozenset(each.name.lower() for each in told)
