"""What groups have committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.testing.conversation import check

if TYPE_CHECKING:
    from wirebroker.testing.conversation import Conversation, Patience

# Later versions ask for several groups at once.
_ONE_GROUP: Final = 7
_ONE_KEY: Final = 3
_ALL_TOPICS: Final = None


async def committed_offsets(
    conversation: Conversation, group: str, patience: Patience
) -> dict[tuple[str, int], int]:
    """Return the committed offset of each partition that a group has one for.

    Raises:
        KafkaError: The group's coordinator does not answer.
    """
    request = {"group_id": group, "topics": _ALL_TOPICS}
    while True:
        # As every client does; the first of all makes the topic that they are kept in.
        where = {"key": group, "key_type": 0}
        found = await conversation.ask(ApiKey.FIND_COORDINATOR, where, patience, at_most=_ONE_KEY)
        code = found.error_code
        if not code:
            answer = await conversation.ask(
                ApiKey.OFFSET_FETCH, request, patience, at_most=_ONE_GROUP
            )
            code = answer.error_code
            if not code:
                return {
                    (topic.name, partition.partition_index): partition.committed_offset
                    for topic in answer.topics
                    for partition in topic.partitions
                    if partition.committed_offset >= 0
                }
        if not await conversation.is_worth_another_try(code, patience):
            check(code, f"the offsets of the group {group}")
