"""The rights of the service's login, checked before it starts.

Brokers report a login's operations on topics and groups (KIP-430). Source: Kafka's KafkaApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # pyright: ignore[reportPrivateImportUsage]

from wirebroker.delivery.model.rules import dead_letters_of
from wirebroker.delivery.service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.delivery.model.rules import DeliveryRules

_WAIT_S: Final = 30.0
# Before a transaction; deliveries wait meanwhile.
_SHORT_WAIT_S: Final = 2.0
# Error codes for a missing right.
REFUSALS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


class NeededRight(NamedTuple):
    """An operation on a resource, as `wirebroker acl create` names them."""

    operation: str
    resource: str
    name: str
    is_prefixed: bool = False

    def command(self, user: str) -> str:
        """Return the command that grants it."""
        prefixed = " --prefixed" if self.is_prefixed else ""
        return (
            f"wirebroker acl create --allow User:{user or 'NAME'} --operation {self.operation} "
            f"--{self.resource} {self.name}{prefixed}"
        )


def check_targets(rules: DeliveryRules, *, has_authorizer: bool) -> None:
    """Refuse to start without targets on a cluster with an authorizer.

    Raises:
        ServiceError: See above.
    """
    if rules.targets is None and has_authorizer:
        raise ServiceError(
            "wirebroker.delivery.targets is not set, and the cluster has an authorizer: every "
            "client that may write to the input topics would use the service's rights on all "
            "topics. List the topics that it may deliver to"
        )


def check_rights(admin: Any, rules: DeliveryRules, user: str) -> None:
    """Check the rights on existing topics and the group.

    Raises:
        KafkaException: A broker does not respond.
        ServiceError: Rights are missing; the message has the commands that grant them.
    """
    needed: dict[str, tuple[str, ...]] = dict.fromkeys(rules.input_topics, ("read",))
    needed |= {dead_letters_of(topic): ("write",) for topic in rules.input_topics}
    needed[rules.pending_topic] = ("read", "write")
    needed |= dict.fromkeys(rules.named_targets, ("write",))
    missing = [*_missing_on_topics(admin, needed), *_missing_on_group(admin, rules.group)]
    if missing:
        raise missing_rights(missing, user)


def missing_rights(missing: Iterable[NeededRight], user: str) -> ServiceError:
    """Return the error for missing rights."""
    commands = "\n".join(f"  {right.command(user)}" for right in missing)
    return ServiceError(f"the login of the delivery service lacks rights:\n{commands}")


def refused_right(error: KafkaError, group: str) -> NeededRight | None:
    """Return the right that a refused client lacks, as far as the error says."""
    if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return NeededRight("write", "transactional-id", f"{group}-", is_prefixed=True)
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return NeededRight("read", "group", group)
    return None


def allowed_writes(admin: Any, topics: Collection[str]) -> dict[str, bool | None]:
    """Return whether the login may write to each topic; None for missing topics.

    Return an empty dict if no broker responds.
    """
    futures = admin.describe_topics(
        TopicCollection(list(topics)),
        include_authorized_operations=True,
        request_timeout=_SHORT_WAIT_S,
    )
    if all(map(_is_unanswered, futures.values())):
        return {}
    return {name: _answer(future, "write") for name, future in futures.items()}


def _is_unanswered(future: Any) -> bool:
    error = future.exception()
    # The codes of librdkafka's own errors are negative.
    return isinstance(error, KafkaException) and error.args[0].code() < 0


def _missing_on_topics(admin: Any, needed: Mapping[str, tuple[str, ...]]) -> list[NeededRight]:
    futures = admin.describe_topics(
        TopicCollection(list(needed)), include_authorized_operations=True, request_timeout=_WAIT_S
    )
    _raise_unanswered(futures.values())
    return [
        NeededRight(operation, "topic", name)
        for name, future in futures.items()
        for operation in needed[name]
        if not _allows(future, operation)
    ]


def _missing_on_group(admin: Any, group: str) -> list[NeededRight]:
    futures = admin.describe_consumer_groups(
        [group], include_authorized_operations=True, request_timeout=_WAIT_S
    )
    _raise_unanswered(futures.values())
    return [] if _allows(futures[group], "read") else [NeededRight("read", "group", group)]


def _raise_unanswered(futures: Iterable[Any]) -> None:
    for future in futures:
        if _is_unanswered(future):
            raise future.exception()


def _allows(future: Any, operation: str) -> bool:
    return _answer(future, operation) is not False


def _answer(future: Any, operation: str) -> bool | None:
    """Return whether an operation is allowed; None if the broker does not say.

    That is so for missing topics, and while Apache Kafka starts.
    """
    try:
        operations: list[AclOperation] = future.result().authorized_operations
    except KafkaException as error:
        return False if error.args[0].code() in REFUSALS else None
    if not operations:
        return None
    if AclOperation.ALL in operations:
        return True
    return operation in {allowed.name.lower() for allowed in operations}
