"""Topics as tests make and find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.testing.conversation import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.testing.conversation import Conversation, Patience

# Of DescribeConfigs' resources.
_BROKER: Final = 4


async def create_topics(
    conversation: Conversation,
    partitions: Mapping[str, int],
    config: Mapping[str, str],
    patience: Patience,
) -> None:
    """Create topics, all in one request.

    Args:
        conversation: With the broker.
        partitions: How many each topic has.
        config: Topic configs, the same for all of them.
        patience: For the answer.

    Raises:
        KafkaError: One can't be created, such as TOPIC_ALREADY_EXISTS.
    """
    configs = [{"name": name, "value": value} for name, value in config.items()]
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": -1, "configs": configs}
        for name, count in partitions.items()
    ]
    request = {"topics": topics, "timeout_ms": int(patience.left_s * 1000)}
    answer = await conversation.ask(ApiKey.CREATE_TOPICS, request, patience)
    for topic in answer.topics:
        check(topic.error_code, f"{topic.name}: {topic.error_message or 'not created'}")


async def list_topics(conversation: Conversation, patience: Patience) -> dict[str, int]:
    """Return how many partitions each topic has, Kafka's own left out."""
    answer = await conversation.ask(ApiKey.METADATA, {"topics": None}, patience)
    found = [each for each in answer.topics if not each.is_internal]
    return {each.name: len(each.partitions) for each in sorted(found, key=lambda each: each.name)}


async def count_partitions(
    conversation: Conversation, topic: str, patience: Patience, *, may_create: bool
) -> int | None:
    """Return how many partitions a topic has, when all of them are led; None without the topic.

    Args:
        conversation: With the broker.
        topic: Its name.
        patience: For a topic that is being made.
        may_create: Whether it is made if there is none, if auto.create.topics.enable allows it.

    Raises:
        KafkaError: The topic cannot be had, such as INVALID_TOPIC_EXCEPTION.
    """
    request = {"topics": [{"name": topic}], "allow_auto_topic_creation": may_create}
    is_being_made = False
    while True:
        answer = await conversation.ask(ApiKey.METADATA, request, patience)
        found = answer.topics[0]
        codes = {found.error_code, *(each.error_code for each in found.partitions)} - {0}
        if not codes:
            return len(found.partitions)
        code = codes.pop()
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if not may_create:
                return None
            is_being_made = is_being_made or await _creates_topics(conversation, answer, patience)
            # Until it is made it is not there, which the code alone would say of any other too.
            code = ErrorCode.LEADER_NOT_AVAILABLE if is_being_made else code
        if not await conversation.is_worth_another_try(code, patience):
            raise KafkaError(ErrorCode(code), f"there is no topic {topic} to be had")


async def _creates_topics(conversation: Conversation, metadata: Any, patience: Patience) -> bool:
    """Ask the broker whether it creates topics that a client asks for."""
    name = "auto.create.topics.enable"
    broker = {
        "resource_type": _BROKER,
        "resource_name": str(metadata.brokers[0].node_id),
        "configuration_keys": [name],
    }
    answer = await conversation.ask(ApiKey.DESCRIBE_CONFIGS, {"resources": [broker]}, patience)
    return any(each.value == "true" for each in answer.results[0].configs if each.name == name)
