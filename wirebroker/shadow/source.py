"""What the source is asked: its topics, their ids, configs and epochs, where partitions begin."""

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
    """A topic of the source.

    Attributes:
        name: Its name.
        topic_id: Its id; zeros if the cluster has none (before Kafka 2.8).
        leaders: The leader of each partition; -1 while there is none.
        leader_epochs: The leader epoch of each partition.
        configs: What is set for it, by name.
    """

    name: str
    topic_id: bytes
    leaders: Mapping[int, int]
    leader_epochs: Mapping[int, int]
    configs: Mapping[str, str]


class Source:
    """The cluster that is copied.

    Args:
        client: It.
        is_wanted: Tells by a topic's name, and whether it is internal, if it is to be copied.
    """

    def __init__(self, client: KafkaClient, is_wanted: Callable[[str, bool], bool]) -> None:
        self.client = client
        self._is_wanted = is_wanted

    async def cluster_id(self) -> str:
        """Return the cluster's id.

        Raises:
            ClientError: Nobody answers, or it has none.
        """
        answer = await self.client.metadata([])
        if not answer.cluster_id:
            raise ClientError("the cluster tells no id")
        return str(answer.cluster_id)

    async def release(self) -> str:
        """Return the release of Kafka whose features a copy has, so that the source can open it.

        Raises:
            ClientError: Nobody answers.
        """
        levels = {each.name: each.level for each in await features_of(self.client)}
        return release_of(levels.get("metadata.version", 0))

    async def topics(self) -> list[SourceTopic]:
        """Return the topics to be copied as they are now, without their configs.

        Raises:
            ClientError: Nobody answers; a topic may not be read; a cluster has no topic ids.
        """
        found: list[SourceTopic] = []
        for each in (await self.client.metadata()).topics:
            if not self._is_wanted(each.name, each.is_internal) or each.error_code in PASSING:
                continue
            topic_id = bytes(each.topic_id or _NO_ID)
            if topic_id == _NO_ID:
                raise ClientError("the cluster's topics have no ids: Kafka 2.8 is the oldest")
            rows = {row.partition_index: row for row in each.partitions}
            leaders = {index: row.leader_id for index, row in rows.items()}
            epochs = {index: max(row.leader_epoch, 0) for index, row in rows.items()}
            found.append(SourceTopic(each.name, topic_id, leaders, epochs, {}))
        return found

    async def with_configs(self, topic: SourceTopic) -> SourceTopic:
        """Return a topic with what is set for it, as far as brokers of ours or Kafka 4.4 know it.

        Raises:
            ClientError: It is gone, or may not be read.
        """
        entries = await configs_of(self.client, TOPIC, topic.name)
        configs = {
            each.name: each.value
            for each in entries
            if each.source == "topic" and each.value is not None and each.name in TOPIC_ROWS
        }
        # Segments in another store stay there.
        configs.pop("remote.storage.enable", None)
        return topic._replace(configs=configs)
