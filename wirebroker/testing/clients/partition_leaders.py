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
    """A partition's state in a Metadata response.

    Attributes:
        name: Topic and number.
        leader: Node id; -1 for none.
        replicas: Node ids, the preferred leader first.
        in_sync: Node ids of the ISR.
    """

    name: str
    leader: int
    replicas: list[int]
    in_sync: list[int]

    def check_leader(self) -> None:
        """Raise KafkaError (LEADER_NOT_AVAILABLE) if there is no leader."""
        if self.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {self.name}")


async def partition_state(client: KafkaClient, topic: str, partition: int) -> PartitionState:
    """Request a partition's state.

    Raises:
        ClientError: UNKNOWN_TOPIC_OR_PARTITION, or no broker responds.
    """
    answer = await client.metadata([topic])
    name = f"{topic}-{partition}"
    (row,) = answer.topics
    check(row.error_code, f"there is no {name}")
    found = [each for each in row.partitions if each.partition_index == partition]
    if not found:
        check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {name}")
    each = found[0]
    return PartitionState(name, each.leader_id, list(each.replica_nodes), list(each.isr_nodes))


async def move_leader(client: KafkaClient, topic: str, partition: int, *, to: int) -> None:
    """Make a node the leader; if it has no replica, it gets the current leader's.

    Raises:
        TimeoutError: It does not lead within the client's timeout.
    """
    place = TopicPartition(topic, partition)
    state = await partition_state(client, topic, partition)
    if state.leader == to:
        return
    gone = to if to in state.replicas else state.leader
    wanted = [to, *(each for each in state.replicas if each != gone)]
    await move_replicas(client, {place: wanted})
    async for _ in client.tries():
        state = await partition_state(client, topic, partition)
        if state.leader == to:
            return
        if to in state.in_sync and set(state.replicas) == set(wanted):
            await elect_leaders(client, PREFERRED, [place])
    raise TimeoutError(f"node {to} does not lead {state.name}: {state}")


async def until_in_sync(client: KafkaClient, running: Collection[int]) -> None:
    """Wait until partitions have a leader and all their running replicas in sync.

    Those without a running in-sync replica cannot have a leader and are ignored.

    Raises:
        TimeoutError: A partition is late after the client's timeout.
    """

    def is_late(partition: Any) -> bool:
        in_sync, wanted = set(partition.isr_nodes), {*partition.replica_nodes} & {*running}
        return bool(in_sync & wanted) and not (partition.leader_id in wanted and in_sync >= wanted)

    await _until_none(client, is_late, "not in sync")


async def until_missed(client: KafkaClient, running: Collection[int]) -> None:
    """Wait until all ended nodes have left every ISR that has a running node.

    Raises:
        TimeoutError: One has not after the client's timeout.
    """

    def counts_on_others(partition: Any) -> bool:
        in_sync = set(partition.isr_nodes)
        return not in_sync.isdisjoint(running) and not in_sync <= {*running}

    await _until_none(client, counts_on_others, "nodes that were ended are not missed")


async def _until_none(client: KafkaClient, is_late: Callable[[Any], bool], what: str) -> None:
    late: list[str] = []
    async for _ in client.tries():
        late = [
            f"{topic.name}-{each.partition_index}"
            for topic in (await client.metadata()).topics
            for each in topic.partitions
            if is_late(each)
        ]
        if not late:
            return
    raise TimeoutError(f"{what} within {client.timeout_s:g} s: {', '.join(late[:3])}")
