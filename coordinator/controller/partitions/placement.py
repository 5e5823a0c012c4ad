"""Placement of replicas, and checks of a client's choice.

Source: Kafka's StripedReplicaPlacer, and validateManualPartitionAssignment in its
ReplicationControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import (
    UNASSIGNED_DIRECTORY,
    ClusterImage,
    PartitionImage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Placer:
    """A placer of new partitions: leaders striped over active brokers, replicas over racks.

    From the leader's rack on, each rack provides a broker in turn, fenced ones last. Brokers
    without a rack count as one rack (KIP-36). Brokers that are shutting down, or with all
    directories cordoned, get no replicas (KIP-1066).
    """

    __slots__ = ("_image", "_racks", "_replication_factor", "_turn")

    def __init__(self, image: ClusterImage, *, replication_factor: int) -> None:
        """Begin with a first leader that varies between requests.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR: too few brokers.
        """
        racks: dict[str, _Rack] = {}
        usable = [broker for _, broker in sorted(image.brokers.items()) if broker.takes_replicas]
        for broker in usable:
            rack = racks.setdefault(broker.rack or "", _Rack([], []))
            (rack.active if broker.is_active else rack.idle).append(broker.node_id)
        if not any(rack.active for rack in racks.values()):
            raise _impossible(
                replication_factor,
                "All brokers are currently fenced, or have all their log directories cordoned.",
            )
        if replication_factor > len(usable):
            raise _impossible(
                replication_factor,
                f"The target replication factor of {replication_factor} cannot be reached because"
                f" only {len(usable)} broker(s) are registered or some brokers have all their log"
                " directories cordoned.",
            )
        self._image = image
        self._replication_factor = replication_factor
        self._racks = [racks[name] for name in sorted(racks)]
        self._turn = image.offset

    def place(self, index: int) -> PartitionImage:
        """Return the next partition, led by its first replica."""
        leaders = [rack for rack in self._racks if rack.active]
        first = self._racks.index(leaders[self._turn % len(leaders)])
        racks = self._racks[first:] + self._racks[:first]
        # Rotate the brokers within each rack.
        turn = self._turn // len(leaders)
        self._turn += 1
        waiting = [rack.from_turn(turn + distance) for distance, rack in enumerate(racks)]
        replicas: list[int] = []
        while len(replicas) < self._replication_factor:
            replicas += [brokers.pop() for brokers in waiting if brokers]
        return new_partition(self._image, index, replicas[: self._replication_factor])


class _Rack(NamedTuple):
    active: list[int]
    idle: list[int]

    def from_turn(self, turn: int) -> list[int]:
        """Return all brokers in reverse order: fenced ones first, the next one last."""
        first = turn % len(self.active) if self.active else 0
        return (self.active[first:] + self.active[:first] + self.idle)[::-1]


def new_partition(image: ClusterImage, index: int, replicas: Sequence[int]) -> PartitionImage:
    """Return a new partition with all active replicas, at least one, in sync."""
    isr = tuple(replica for replica in replicas if image.brokers[replica].is_active)
    return PartitionImage(
        index=index,
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(directory_for(image, replica) for replica in replicas),
    )


def directory_for(image: ClusterImage, broker: int) -> bytes:
    """Return the only log directory of a broker; with several the broker chooses (KIP-858)."""
    directories = image.brokers[broker].log_directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def check_manual_assignment(
    image: ClusterImage, replicas: Sequence[int], *, partition: int, replication_factor: int | None
) -> None:
    """Check a client's choice of replicas.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        raise _refused("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in image.brokers:
            raise _refused(
                f"The manual partition assignment includes broker {broker}, but no such broker is"
                " registered."
            )
        if broker == previous:
            raise _refused(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _refused(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s),"
            " but this is not consistent with previous partitions, which have"
            f" {replication_factor} replica(s)."
        )
    if not any(image.brokers[broker].is_active for broker in replicas):
        raise _refused(
            f"All brokers in the manual assignment of partition {partition} are fenced or"
            " shutting down."
        )


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _impossible(replication_factor: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )
