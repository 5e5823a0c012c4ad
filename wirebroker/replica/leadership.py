"""Who is told which partitions this node begins and ends to lead, and in which order.

    metadata --> ReplicaManager --> Partition.enter(image) --.
    deletion, failed disk, stop ---> Partition.leave() -------+--> LeadershipChange --> subscribers

Whatever lives on top of a leadership (coordinators, their timers and their waiters) is begun and
ended here, at start, at a failover, when a disk fails and at the stop alike.

Laws:
- A change is told in the turn of the loop in which the partitions' roles changed: between a
  transition and its telling nobody else runs. So a subscriber never awaits; what takes long it
  begins as a task of its own.
- Subscribers are told in the order in which they subscribed; of one change, all hear of `resigned`
  before `elected` means anything: no partition is in both.
- A partition that this node goes on leading under a later epoch is in `elected` alone, with the new
  epoch (as in Kafka: whoever holds state of the older epoch decides what stays true).
- For each partition the epochs in `elected` rise strictly; one in `resigned` was in an `elected`
  before, and is in `resigned` once.
- Whoever subscribes is told at once what is led by then.

Source: Kafka's BrokerMetadataPublisher.updateCoordinator, TopicDelta.localChanges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from wirebroker.replica.partition import Partition

    Subscriber = Callable[["LeadershipChange"], None]
    RoleWatcher = Callable[[Collection[Partition]], None]


class Leadership(NamedTuple):
    """One partition that this node leads or led."""

    partition: Partition
    # Under which it leads since now, or led until now.
    leader_epoch: int


class LeadershipChange(NamedTuple):
    """What changed at one moment."""

    # Led from now on, in the order of the metadata.
    elected: Sequence[Leadership] = ()
    # Led no more: another node leads, nobody does, the partition was deleted, its disk has failed,
    # the broker stops. `Partition.check_leader` raises what those are told who ask.
    resigned: Sequence[Leadership] = ()


class Leaderships:
    """What this node leads, and who wants to know."""

    __slots__ = ("_led", "_role_watchers", "_subscribers")

    # Every value of _led is a leader epoch that was told as elected and not yet as resigned.

    def __init__(self) -> None:
        self._led: dict[Partition, int] = {}
        self._subscribers: list[Subscriber] = []
        self._role_watchers: list[RoleWatcher] = []

    @property
    def led(self) -> dict[Partition, int]:
        """Return what this node leads, with the epochs; not to be changed."""
        return self._led

    def subscribe(self, on_change: Subscriber) -> None:
        """Tell of every change from now on, and at once of what is led now."""
        self._subscribers.append(on_change)
        if self._led:
            on_change(LeadershipChange([Leadership(*each) for each in self._led.items()]))

    def unsubscribe(self, on_change: Subscriber) -> None:
        """Tell no more."""
        self._subscribers.remove(on_change)

    def watch_roles(self, on_moved: RoleWatcher) -> None:
        """Tell from now on of all partitions whose role has changed, those that follow too."""
        self._role_watchers.append(on_moved)

    def tell_moved(self, moved: Collection[Partition]) -> None:
        """Tell who watches roles; after `tell`, in the same turn of the loop."""
        for on_moved in self._role_watchers:
            on_moved(moved)

    def tell(self, change: LeadershipChange) -> None:
        """Note a change, and tell all subscribers."""
        led = self._led
        for partition, leader_epoch in change.resigned:
            before = led.pop(partition)
            assert before == leader_epoch, f"{partition} led in {before}, not {leader_epoch}"
        for partition, leader_epoch in change.elected:
            assert led.get(partition, -1) < leader_epoch, f"{partition} leads in {led[partition]}"
            led[partition] = leader_epoch
        if change.elected or change.resigned:
            for on_change in tuple(self._subscribers):
                on_change(change)
