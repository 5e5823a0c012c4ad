"""A ConsumerGroupHeartbeat request, and the checks that need no group.

Source: Kafka's GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.subscription import encoded_names_in_steps
from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
)
from wirebroker.coordinator.groups.consumer.subscriptions import size_of_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps

# From this version on, members choose their ids themselves (KIP-1082).
_FIRST_OWN_ID_VERSION: Final = 1
_NO_TIMEOUT: Final = -1
# Each request of a group looks at all topics of its members, and at the partitions it reports.
MOST_TOPICS: Final = 20_000
MOST_PARTITIONS: Final = 200_000


class RequestedNames(NamedTuple):
    """The many topics that a request subscribes to by name, sorted and encoded in steps.

    The heartbeat's operation must not be long, so everything that depends only on the request is
    prepared before.

    Attributes:
        ordered: The names, sorted.
        encoded: The names as they are encoded in the member's record.
        size_bytes: Their approximate memory.
    """

    names: frozenset[str]
    ordered: Sequence[str]
    encoded: bytes
    size_bytes: int


def requested_names(names: Iterable[str]) -> Steps[RequestedNames]:
    """Return the names of a request."""
    distinct = frozenset(names)
    yield
    ordered = yield from sorted_in_steps(distinct, str)
    encoded = yield from encoded_names_in_steps(ordered)
    yield
    return RequestedNames(distinct, ordered, encoded, size_of_names(distinct))


class ConsumerHeartbeat(NamedTuple):
    """A request and its client.

    Attributes:
        context: The client's access rights, for the topics of its regular expression.
        requested: Its many topics by name; None if it lists none, or they are not prepared.
    """

    body: Any
    version: int
    client_id: str
    client_host: str
    context: Any = None
    requested: RequestedNames | None = None

    @property
    def regex(self) -> str | None:
        """The regular expression of the subscription; None: as before."""
        regex: str | None = getattr(self.body, "subscribed_topic_regex", None)
        return regex

    @property
    def is_full(self) -> bool:
        """Whether it states everything, as after an error, so that the response does too."""
        body = self.body
        has_subscription = body.subscribed_topic_names is not None or self.regex is not None
        states_partitions = body.topic_partitions is not None
        return body.rebalance_timeout_ms != _NO_TIMEOUT and has_subscription and states_partitions

    def check_count(self) -> None:
        """Check the number of topics, before they are sorted, encoded or measured.

        Raises:
            KafkaError: INVALID_REQUEST.
        """
        if len(self.body.subscribed_topic_names or ()) > MOST_TOPICS:
            raise _invalid(f"A member can subscribe to at most {MOST_TOPICS} topics by name.")

    def check(self, assignors: Sequence[str]) -> None:
        """Check the fields.

        Raises:
            KafkaError: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR.
        """
        self.check_count()
        body = self.body
        epoch: int = body.member_epoch
        owned = body.topic_partitions or ()
        if len(owned) + sum(len(topic.partitions) for topic in owned) > MOST_PARTITIONS:
            raise _invalid(f"A member can own at most {MOST_PARTITIONS} topics and partitions.")
        if self.version >= _FIRST_OWN_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
            _refuse_blank(body.member_id, "MemberId can't be empty.")
        _refuse_blank(body.group_id, "GroupId can't be empty.")
        _refuse_blank(body.instance_id, "InstanceId can't be empty.")
        _refuse_blank(body.rack_id, "RackId can't be empty.")
        if epoch == JOIN_EPOCH:
            self._check_join()
        elif epoch == LEAVE_STATIC_EPOCH and body.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif epoch < LEAVE_STATIC_EPOCH:
            raise _invalid("MemberEpoch is invalid.")
        if body.server_assignor is not None and body.server_assignor not in assignors:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"ServerAssignor {body.server_assignor} is not supported. Supported assignors: "
                f"{', '.join(sorted(assignors, reverse=True))}.",  # in Kafka's order
            )

    def _check_join(self) -> None:
        body = self.body
        if body.rebalance_timeout_ms == _NO_TIMEOUT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if body.topic_partitions is None or body.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if body.subscribed_topic_names is None and self.regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )


def _refuse_blank(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
