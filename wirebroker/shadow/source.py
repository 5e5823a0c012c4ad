"""Requests to the source: topics with their ids, configs and epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.cluster.features import features_of
from wirebroker.client.configs.configs import TOPIC, configs_of
from wirebroker.client.errors import PASSING, ClientError
from wirebroker.config.rows.releases import release_of
from wirebroker.config.rows.topic import TOPIC_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.client.kafka_client import KafkaClient

_NO_ID = bytes(16)


class SourceTopic(NamedTuple):
    """A topic of the source; leaders (-1 for none) and epochs are by partition."""

    name: str
    topic_id: bytes
    leaders: Mapping[int, int]
    leader_epochs: Mapping[int, int]
    configs: Mapping[str, str]


class Source:
    """The cluster to copy; `is_wanted` takes a topic's name and whether it is internal."""

    def __init__(self, client: KafkaClient, is_wanted: Callable[[str, bool], bool]) -> None:
        self.client = client
        self._is_wanted = is_wanted

    async def cluster_id(self) -> str:
        """Return the cluster id."""
        answer = await self.client.metadata([])
        if not answer.cluster_id:
            raise ClientError("the cluster returned no cluster id")
        return str(answer.cluster_id)

    async def release(self) -> str:
        """Return the Kafka release whose features the copy gets, so that the source can open it."""
        levels = {feature.name: feature.level for feature in await features_of(self.client)}
        return release_of(levels.get("metadata.version", 0))

    async def topics(self) -> list[SourceTopic]:
        """Return the topics to copy, without configs.

        Raises:
            ClientError: No broker responds, or topics have no ids.
        """
        topics: list[SourceTopic] = []
        for topic in (await self.client.metadata()).topics:
            if not self._is_wanted(topic.name, topic.is_internal) or topic.error_code in PASSING:
                continue
            topic_id = bytes(topic.topic_id or _NO_ID)
            if topic_id == _NO_ID:
                raise ClientError(
                    "the cluster's topics have no ids: upgrade it to Kafka 2.8 or newer"
                )
            rows = {row.partition_index: row for row in topic.partitions}
            leaders = {index: row.leader_id for index, row in rows.items()}
            epochs = {index: max(row.leader_epoch, 0) for index, row in rows.items()}
            topics.append(SourceTopic(topic.name, topic_id, leaders, epochs, {}))
        return topics

    async def with_configs(self, topic: SourceTopic) -> SourceTopic:
        """Return a topic with its set configs, as far as wirebroker knows them."""
        entries = await configs_of(self.client, TOPIC, topic.name)
        configs = {
            entry.name: entry.value
            for entry in entries
            if entry.source == "topic" and entry.value is not None and entry.name in TOPIC_ROWS
        }
        # Tiered segments are not copied.
        configs.pop("remote.storage.enable", None)
        return topic._replace(configs=configs)
