"""A ShareGroupHeartbeat request, and the checks that need no group.

Source: Kafka's KafkaApis.isMemberIdValid,
GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.consumer_member import JOIN_EPOCH, LEAVE_EPOCH

# Each request of a member looks at all topics of its group, and one record has all of them: 15 ms
# with this number. Kafka's record is too large with about 17,000 topics.
MOST_TOPICS: Final = 2_500
# The length of a UUID's text.
_LONGEST_MEMBER_ID: Final = 36


def is_member_id(member_id: str) -> bool:
    """Return whether a text may be the id of a member."""
    return 0 < len(member_id) <= _LONGEST_MEMBER_ID


class ShareHeartbeat(NamedTuple):
    """A request and its client."""

    body: Any
    client_id: str
    client_host: str

    def check(self) -> None:
        """Check the fields.

        Raises:
            KafkaError: INVALID_REQUEST.
        """
        body = self.body
        names = body.subscribed_topic_names
        if names is not None and len(names) > MOST_TOPICS:
            raise _invalid(f"A member can subscribe to at most {MOST_TOPICS} topics by name.")
        _refuse_blank(body.member_id, "MemberId can't be empty.")
        _refuse_blank(body.group_id, "GroupId can't be empty.")
        _refuse_blank(body.rack_id, "RackId can't be empty.")
        if body.member_epoch == JOIN_EPOCH:
            if not names:
                raise _invalid("SubscribedTopicNames must be set in first request.")
        elif body.member_epoch < LEAVE_EPOCH:
            raise _invalid("MemberEpoch is invalid.")


def _refuse_blank(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
