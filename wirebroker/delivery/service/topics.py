"""The topics of the cluster, as the service needs them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,  # pyright: ignore[reportPrivateImportUsage]
    NewTopic,  # pyright: ignore[reportPrivateImportUsage]
    OffsetSpec,  # pyright: ignore[reportPrivateImportUsage]
)

from wirebroker.delivery.model.rules import dead_letters_of
from wirebroker.delivery.model.topic_configs import CLEANUP_POLICY, LETTERS_CONFIG, PENDING_CONFIG
from wirebroker.delivery.service.errors import ServiceError, StoppingError
from wirebroker.delivery.service.rights import REFUSALS, NeededRight, missing_rights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from threading import Event

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.write_rights import WriteRights

logger = logging.getLogger(__name__)

_WAIT_S: Final = 30.0
# In a rebalance, for which a service that stops waits (batch_reader.py).
_ENDS_WAIT_S: Final = 15.0
# Between looks at a topic that was just created.
_PAUSE_S: Final = 0.1
# A known topic may have been deleted or extended meanwhile.
_KNOWN_S: Final = 30.0


class ClusterTopics:
    """Partition counts and ids of topics, cached; creates the service's own topics.

    Attributes:
        admin: The AdminClient.
        rights: The rights on topics; None if the cluster has no authorizer.
    """

    def __init__(self, kafka: Mapping[str, str], clock: Clock) -> None:
        # Its types are partial.
        self.admin: Any = AdminClient({"log_level": 4, **kafka})
        self._clock = clock
        self._counts: dict[str, int] = {}
        self.rights: WriteRights | None = None
        self._asked_at: float | None = None
        self._is_recent = False

    def begin_transaction(self) -> None:
        """Ask again if the next transaction needs a topic or a partition that is not known.

        It may have been created a moment before a record for it.
        """
        self._is_recent = False

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        """Return a topic's number of partitions; 0 if it does not exist.

        Asks the cluster again, once for each transaction, if there would be fewer than `at_least`.

        Raises:
            KafkaException: No broker responds.
        """
        lacks = self._counts.get(topic, 0) < at_least
        if self._age_s() >= _KNOWN_S or (lacks and not self._is_recent):
            self._refresh()
        return self._counts.get(topic, 0)

    def _age_s(self) -> float:
        if self._asked_at is None:
            return _KNOWN_S
        return self._clock.monotonic() - self._asked_at

    def _refresh(self) -> None:
        # All topics: a request for one might create it.
        metadata = self.admin.list_topics(timeout=_WAIT_S)
        self._counts = {
            name: len(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None
        }
        self._asked_at = self._clock.monotonic()
        self._is_recent = True

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic; True if it is not known to exist."""
        return self.rights is None or topic not in self._counts or self.rights.may_write(topic)

    def confirm_rights(self) -> bool:
        """Return whether the topics that seemed writable are; see WriteRights."""
        return self.rights is None or self.rights.confirm()

    def topic_id(self, topic: str) -> str:
        """Return a topic's id.

        Raises:
            KafkaException: It cannot be described.
        """
        described = self.admin.describe_topics(TopicCollection([topic]), request_timeout=_WAIT_S)
        return str(described[topic].result().topic_id)

    def ends(self, topic: str, numbers: Iterable[int]) -> dict[int, int]:
        """Return the high watermarks of partitions: open transactions are before them.

        Raises:
            KafkaException: A leader does not respond, or its connection breaks.
        """
        latest: Any = OffsetSpec
        requested = {TopicPartition(topic, number): latest.latest() for number in numbers}
        if not requested:
            return {}
        answers = self.admin.list_offsets(
            requested, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_ENDS_WAIT_S
        )
        ends = {place.partition: int(answer.result().offset) for place, answer in answers.items()}
        # If a connection breaks, librdkafka 2.16 reports OFFSET_INVALID and no error.
        unknown = sorted(number for number, end in ends.items() if end < 0)
        if unknown:
            reason = f"the connection broke: no end offsets of partitions {unknown} of {topic}"
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, reason))
        return ends

    def create_missing(self, settings: ServiceSettings, stopping: Event) -> None:
        """Create the input topics, their dead-letter topics and the pending topic.

        Raises:
            ServiceError: A topic cannot be created, or the pending topic is not compacted or has
                another number of partitions than the config says.
            StoppingError: `stopping` was set meanwhile.
        """
        rules = settings.rules
        wanted: dict[str, dict[str, str]] = {topic: {} for topic in rules.input_topics}
        wanted |= {dead_letters_of(topic): LETTERS_CONFIG for topic in rules.input_topics}
        wanted[rules.pending_topic] = PENDING_CONFIG
        missing = [topic for topic in wanted if not self.partition_count(topic)]
        new_topics = [
            NewTopic(
                topic,
                num_partitions=settings.partitions,
                replication_factor=settings.replication_factor,
                config=wanted[topic],
            )
            for topic in missing
        ]
        if new_topics:
            self._create(new_topics, settings.user)
        count = self._existing_count(rules.pending_topic, stopping)
        if rules.pending_topic not in missing:
            self._check_policy(rules.pending_topic)
        if count != settings.partitions:
            raise ServiceError(
                f"topic {rules.pending_topic} has {count} partitions, and"
                f" wirebroker.delivery.partitions is {settings.partitions}: set it to {count}, or"
                " use another wirebroker.delivery.group"
            )

    def _check_policy(self, topic: str) -> None:
        """Refuse a pending topic whose entries may be deleted while they wait."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        described = self.admin.describe_configs([resource], request_timeout=_WAIT_S)
        try:
            policy = described[resource].result()[CLEANUP_POLICY].value
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            logger.warning(
                "cannot check that topic %s is compacted: no right describe_configs", topic
            )
            return
        if policy != PENDING_CONFIG[CLEANUP_POLICY]:
            raise ServiceError(
                f"topic {topic} has {CLEANUP_POLICY}={policy}, which deletes waiting records:"
                f" set it to {PENDING_CONFIG[CLEANUP_POLICY]}, or use another"
                " wirebroker.delivery.group"
            )

    def _create(self, new_topics: list[NewTopic], user: str) -> None:
        denied: list[NeededRight] = []
        for name, created in self.admin.create_topics(
            new_topics, operation_timeout=_WAIT_S
        ).items():
            try:
                created.result()
            except KafkaException as error:
                problem = error.args[0]
                if problem.code() in REFUSALS:
                    denied.append(NeededRight("create", "topic", name))
                elif problem.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise ServiceError(
                        f"topic {name} cannot be created: {problem.str().rstrip('.')}. Create it,"
                        " or correct the settings of the service"
                    ) from None
            else:
                logger.info("created topic %s", name)
        self._is_recent = False
        if denied:
            raise missing_rights(denied, user)

    def _existing_count(self, topic: str, stopping: Event) -> int:
        """Return the partitions of a topic that was just created, perhaps by another instance."""
        deadline = self._clock.monotonic() + _WAIT_S
        while not (count := self.partition_count(topic)):
            if self._clock.monotonic() > deadline:
                raise ServiceError(f"topic {topic} was created, but no broker knows it")
            if stopping.wait(_PAUSE_S):
                raise StoppingError
            self._is_recent = False
        return count
