"""Leaders and in-sync replicas in a test cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.client.errors import check
from wirebroker.client.replicas.elections import PREFERRED, elect_leaders
from wirebroker.client.replicas.reassignments import move_replicas
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.client.kafka_client import KafkaClient


class PartitionState(NamedTuple):
    """A partition's state in a Metadata response, with node ids."""

    name: str
    leader: int  # -1 for none
    replicas: list[int]  # the preferred leader first
    in_sync: list[int]

    def check_leader(self) -> None:
        """Raise LEADER_NOT_AVAILABLE if there is no leader."""
        if self.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{self.name} has no leader")


async def partition_state(client: KafkaClient, topic: str, partition: int) -> PartitionState:
    """Request a partition's state.

    Raises:
        ClientError: UNKNOWN_TOPIC_OR_PARTITION, or no broker responds.
    """
    answer = await client.metadata([topic])
    name = f"{topic}-{partition}"
    (row,) = answer.topics
    check(row.error_code, f"there is no {name}")
    matches = [details for details in row.partitions if details.partition_index == partition]
    if not matches:
        check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {name}")
    details = matches[0]
    return PartitionState(
        name, details.leader_id, list(details.replica_nodes), list(details.isr_nodes)
    )


async def move_leader(client: KafkaClient, topic: str, partition: int, *, to: int) -> None:
    """Make a node the leader; without a replica, it gets the current leader's.

    Raises:
        TimeoutError: It does not lead within the client's timeout.
    """
    topic_partition = TopicPartition(topic, partition)
    state = await partition_state(client, topic, partition)
    if state.leader == to:
        return
    removed = to if to in state.replicas else state.leader
    new_replicas = [to, *(replica for replica in state.replicas if replica != removed)]
    await move_replicas(client, {topic_partition: new_replicas})
    async for _ in client.tries():
        state = await partition_state(client, topic, partition)
        if state.leader == to:
            return
        if to in state.in_sync and set(state.replicas) == set(new_replicas):
            await elect_leaders(client, PREFERRED, [topic_partition])
    raise TimeoutError(f"node {to} does not lead {state.name}: {state}")


async def until_in_sync(client: KafkaClient, running: Collection[int]) -> None:
    """Wait until partitions have a leader and all their running replicas in sync.

    Those without a running in-sync replica cannot have a leader and are ignored.

    Raises:
        TimeoutError: After the client's timeout.
    """

    def is_late(partition: Any) -> bool:
        in_sync, running_replicas = (
            set(partition.isr_nodes),
            {*partition.replica_nodes} & {*running},
        )
        return bool(in_sync & running_replicas) and not (
            partition.leader_id in running_replicas and in_sync >= running_replicas
        )

    await _until_none(client, is_late, "not in sync")


async def until_missed(client: KafkaClient, running: Collection[int]) -> None:
    """Wait until ended nodes have left every ISR that has a running node.

    Raises:
        TimeoutError: After the client's timeout.
    """

    def depends_on_others(partition: Any) -> bool:
        in_sync = set(partition.isr_nodes)
        return not in_sync.isdisjoint(running) and not in_sync <= {*running}

    await _until_none(client, depends_on_others, "stopped nodes have not left the ISR")


async def _until_none(client: KafkaClient, is_late: Callable[[Any], bool], failure: str) -> None:
    late: list[str] = []
    async for _ in client.tries():
        late = [
            f"{topic.name}-{partition.partition_index}"
            for topic in (await client.metadata()).topics
            for partition in topic.partitions
            if is_late(partition)
        ]
        if not late:
            return
    raise TimeoutError(f"{failure} within {client.timeout_s:g} s: {', '.join(late[:3])}")
