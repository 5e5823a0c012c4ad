"""The dead-letter topic of a share group: its rules, and its creation.

Source: Kafka's ShareGroupDLQStateManager.ProduceRequestHandler; KIP-1191.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, PartitionImage
    from wirebroker.quorum.channel.controller_channel import ControllerChannel

_CONTROLLERS_DEFAULT: Final = -1
_CONFIGS: Final = {
    "errors.deadletterqueue.group.enable": "true",
    "message.timestamp.type": "CreateTime",
}


def topic_problem(config: Config, image: ClusterImage, group_id: str, topic: str) -> str | None:
    """Return why a group's dead letters cannot be written to a topic, or None."""
    where = f"share group: {group_id}, topic: {topic}"
    if not topic:
        return f"Configured DLQ topic name in share group: {group_id} is empty."
    if topic.startswith("__"):
        return (
            f"Configured DLQ topic name in share group: {group_id} cannot start with __, "
            f"topic: {topic}."
        )
    if topic in image.topics:
        if not settings_of(config, image, topic).errors_deadletterqueue_group_enable:
            return f"DLQ is not enabled on configured DLQ topic for {where}."
    elif not config.bool("errors.deadletterqueue.auto.create.topics.enable"):
        return f"DLQ topic does not exist and auto create is disabled on cluster for {where}."
    prefix = config.str("errors.deadletterqueue.topic.name.prefix")
    if not topic.startswith(prefix):
        return (
            f"Configured DLQ topic name does not comply with the DLQ topic prefix in {where}, "
            f"prefix: {prefix}."
        )
    return None


def settings_of(config: Config, image: ClusterImage, topic: str) -> TopicSettings:
    """Return the settings of a topic."""
    return config.topic_settings(image.topic_config(topic))


def destination(image: ClusterImage, topic: str, source_index: int) -> PartitionImage | None:
    """Return the partition for dead letters of a partition; None while it has no leader."""
    found = image.topics.get(topic)
    if found is None or not found.partitions:
        return None
    partition = found.partitions.get(source_index % len(found.partitions))
    return None if partition is None or partition.leader == NO_LEADER else partition


async def create_topic(controller: ControllerChannel, topic: str) -> None:
    """Create a dead-letter topic.

    Raises:
        KafkaError: It was not created.
    """
    wanted = {
        "name": topic,
        "num_partitions": _CONTROLLERS_DEFAULT,
        "replication_factor": _CONTROLLERS_DEFAULT,
        "configs": [{"name": name, "value": value} for name, value in _CONFIGS.items()],
    }
    answer = await controller.ask(ApiKey.CREATE_TOPICS, {"topics": [wanted]})
    for result in answer.topics:
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message)
