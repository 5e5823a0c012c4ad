"""Reports the log directories of this node's replicas to the controller.

A replica may be in another directory than the metadata says, or about to be moved
(replica_moves.py). When a directory fails, the controller elects other leaders for its replicas. A
node with one directory reports nothing.

Source: Kafka's AssignmentsManager, ReplicaManager.maybeUpdateTopicAssignment; KIP-858.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.features.feature_control import has_directory_assignments
from wirebroker.coordinator.controller.image.cluster_image import (
    UNASSIGNED_DIRECTORY,
    directory_of,
)
from wirebroker.net.client.settings import Backoff
from wirebroker.quorum.channel.controller_channel import check_answer
from wirebroker.quorum.channel.controller_sender import ControllerSender

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

# As in Kafka.
_BACKOFF: Final = Backoff(first_s=0.1, most_s=10.0, jitter=0.02)
# As in Kafka.
_MOST_AT_ONCE: Final = 2_250


_Batch: TypeAlias = "dict[tuple[bytes, int], tuple[Partition, bytes]]"


class DirectoryAssignments(ControllerSender["_Batch"]):
    """The assignments that the controller has not accepted yet."""

    __slots__ = ("_channel", "_lifecycle", "_news", "_planned", "_replicas", "_unreported")

    def __init__(
        self, channel: ControllerChannel, lifecycle: BrokerLifecycle, *, replicas: ReplicaManager
    ) -> None:
        super().__init__("AssignReplicasToDirs", backoff=_BACKOFF, seed=lifecycle.node_id)
        self._channel = channel
        self._lifecycle = lifecycle
        self._replicas = replicas
        # Until the controller has accepted them.
        self._unreported: dict[Partition, bytes] = {}
        # Target directories of pending moves.
        self._planned: dict[Partition, bytes] = {}
        self._news = asyncio.Event()

    def note(self, partitions: Iterable[Partition]) -> None:
        """Report the partitions that are in another directory than the metadata says."""
        for partition in partitions:
            directory_id = self._planned.get(partition, partition.directory.directory_id)
            registered_id = self._registered_directory(partition)
            # Only the metadata knows the id of a directory that could not be opened.
            if registered_id is not None and directory_id not in {
                registered_id,
                UNASSIGNED_DIRECTORY,
            }:
                self._tell(partition, directory_id)

    async def tell(self, partition: Partition, directory_id: bytes) -> None:
        """Report the planned directory of a replica until `forget`; wait for the controller.

        Return immediately if the partition was deleted or the cluster has no directory assignments.
        """
        self._planned[partition] = directory_id
        if self._registered_directory(partition) is not None:
            self._tell(partition, directory_id)
        while self._unreported.get(partition) == directory_id and not self._is_stopped:
            await self._next_news()

    def forget(self, partition: Partition) -> None:
        """End a plan and report the actual directory.

        If the replica was not moved, report this even if the metadata agrees, because the metadata
        may not show the accepted plan yet.
        """
        planned = self._planned.pop(partition, None)
        directory_id = partition.directory.directory_id
        if planned == directory_id:
            self.note((partition,))
        elif planned is not None and self._registered_directory(partition) is not None:
            self._tell(partition, directory_id)

    async def until_reported(self, *, timeout_s: float) -> None:
        """Wait until everything is accepted, or until the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._unreported:
                    await self._next_news()
        except TimeoutError:
            logger.warning(
                "the controller has not accepted the directories of %d replicas yet",
                len(self._unreported),
            )

    async def stop(self) -> None:
        """Stop reporting."""
        await super().stop()
        self._news.set()

    def _registered_directory(self, partition: Partition) -> bytes | None:
        """Return the directory in the metadata, or None to report nothing."""
        image, node_id = self._replicas.image, self._lifecycle.node_id
        topic = image.topics_by_id.get(partition.topic_id)
        registered = None if topic is None else topic.partitions.get(partition.index)
        if (
            partition.is_retired
            or registered is None
            or node_id not in registered.replicas
            or not has_directory_assignments(image.features)
        ):
            return None
        return directory_of(registered, node_id)

    def _tell(self, partition: Partition, directory_id: bytes) -> None:
        self._unreported[partition] = directory_id
        self._wake()

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _next_batch(self) -> _Batch:
        batch: _Batch = {}
        for partition, directory_id in tuple(self._unreported.items()):
            if self._registered_directory(partition) is None:
                del self._unreported[partition]
            elif len(batch) < _MOST_AT_ONCE:
                batch[partition.topic_id, partition.index] = partition, directory_id
        self._news.set()
        return batch

    def _on_sent(self, batch: _Batch, *, was_answered: bool) -> None:
        self._news.set()

    async def _send(self, batch: _Batch) -> int:
        answer = check_answer(
            await self._channel.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, self._body(batch))
        )
        remaining = dict(batch)
        for directory in answer.directories:
            for topic in directory.topics:
                for result in topic.partitions:
                    key = (topic.topic_id, result.partition_index)
                    sent = remaining.get(key)
                    if sent is None or result.error_code or sent[1] != directory.id:
                        continue  # newer metadata will explain it
                    del remaining[key]
                    if self._unreported.get(sent[0]) == sent[1]:
                        del self._unreported[sent[0]]
        return len(remaining)

    def _body(self, batch: _Batch) -> Mapping[str, Any]:
        directories: dict[bytes, dict[bytes, list[dict[str, int]]]] = {}
        for (topic_id, index), (_, directory_id) in batch.items():
            topics = directories.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append({"partition_index": index})
        return {
            "broker_id": self._lifecycle.node_id,
            "broker_epoch": self._lifecycle.broker_epoch,
            "directories": [
                {
                    "id": directory_id,
                    "topics": [
                        {"topic_id": topic_id, "partitions": partitions}
                        for topic_id, partitions in topics.items()
                    ],
                }
                for directory_id, topics in directories.items()
            ],
        }
