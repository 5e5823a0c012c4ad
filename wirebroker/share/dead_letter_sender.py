"""Produces batches to the leaders of dead-letter topics, on this node or another one.

Source: Kafka's ShareGroupDLQStateManager.SendThread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage, TopicImage
    from wirebroker.net.client.node import Node
    from wirebroker.replica.replica_manager import ReplicaManager

# Of a Produce request, as in Kafka.
_TIMEOUT_S: Final = 30.0
_ACKS_ALL: Final = -1
_VERSION: Final = SPOKEN_VERSIONS[ApiKey.PRODUCE].max_version


class DeadLetterSender:
    """Appends batches with acks=all."""

    __slots__ = ("_clock", "_find_node", "_replicas")

    def __init__(
        self, replicas: ReplicaManager, find_node: Callable[[int], Node | None], clock: Clock
    ) -> None:
        """Use the nodes that `find_node` returns."""
        self._replicas = replicas
        self._find_node = find_node
        self._clock = clock

    async def send(self, topic: TopicImage, partition: PartitionImage, batch: bytearray) -> None:
        """Append a batch and wait until it is committed.

        Raises:
            KafkaError: It was not appended, or not committed in time.
        """
        if partition.leader == self._replicas.node_id:
            await self._append(topic, partition.index, batch)
        else:
            await self._produce(topic, partition, batch)

    async def _append(self, topic: TopicImage, index: int, batch: bytearray) -> None:
        partition = self._replicas.find("", topic.topic_id, by_id=True)[0].get(index)
        if partition is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.check_leader()
        partition.check_in_sync()
        try:
            result = await partition.append_in_turn(
                memoryview(batch),
                now_ms=self._clock.now_ms(),
                request_version=_VERSION,
                slices=Slices(self._clock),
            )
            async with asyncio.timeout(_TIMEOUT_S):
                await partition.until_committed(result.last_offset + 1)
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None
        except OSError as fault:
            self._replicas.disk_failed(partition, fault)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from fault

    async def _produce(
        self, topic: TopicImage, partition: PartitionImage, batch: bytearray
    ) -> None:
        node = self._find_node(partition.leader)
        if node is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        data = {"index": partition.index, "records": bytes(batch)}
        body = {
            "acks": _ACKS_ALL,
            "timeout_ms": int(_TIMEOUT_S * 1000),
            "topic_data": [
                {"name": topic.name, "topic_id": topic.topic_id, "partition_data": [data]}
            ],
        }
        try:
            answer = await node.request(ApiKey.PRODUCE, body, timeout_s=_TIMEOUT_S)
        except PeerError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        for response in answer.responses:
            for result in response.partition_responses:
                if result.error_code:
                    raise KafkaError(ErrorCode(result.error_code), result.error_message)
