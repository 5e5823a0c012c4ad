"""Notifies subscribers which partitions this node begins and ends to lead.

Invariants:
- Subscribers are notified in the same turn of the event loop in which the roles changed, before any
  other code runs. So a subscriber never awaits; it starts a task for long work.
- No partition is both in `resigned` and in `elected` of one change. One that this node continues to
  lead under a later epoch is in `elected` alone, as in Kafka: each subscriber decides which state
  of the older epoch stays valid.
- For each partition the elected epochs rise strictly; each is resigned at most once.

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
    leader_epoch: int


class LeadershipChange(NamedTuple):
    """Leaderships that began and ended together."""

    # In the order of the metadata.
    elected: Sequence[Leadership] = ()
    # Another node or none leads, the partition was deleted, its disk failed, or the broker stops.
    resigned: Sequence[Leadership] = ()


class Leaderships:
    """The led partitions and the subscribers to changes."""

    __slots__ = ("_led", "_role_watchers", "_subscribers")

    def __init__(self) -> None:
        self._led: dict[Partition, int] = {}
        self._subscribers: list[Subscriber] = []
        self._role_watchers: list[RoleWatcher] = []

    @property
    def led(self) -> dict[Partition, int]:
        """The led partitions with their reported leader epochs; read-only."""
        return self._led

    def subscribe(self, on_change: Subscriber) -> None:
        """Call `on_change` with the current leaderships now, and with every later change."""
        self._subscribers.append(on_change)
        if self._led:
            on_change(LeadershipChange([Leadership(*item) for item in self._led.items()]))

    def unsubscribe(self, on_change: Subscriber) -> None:
        """Remove a subscriber."""
        self._subscribers.remove(on_change)

    def watch_roles(self, on_moved: RoleWatcher) -> None:
        """Call `on_moved` with the partitions of every role change, followers included."""
        self._role_watchers.append(on_moved)

    def notify_role_changes(self, moved: Collection[Partition]) -> None:
        """Notify the role watchers, after `tell` in the same turn of the loop."""
        for on_moved in self._role_watchers:
            on_moved(moved)

    def tell(self, change: LeadershipChange) -> None:
        """Apply a change and notify all subscribers."""
        led = self._led
        for partition, leader_epoch in change.resigned:
            before = led.pop(partition)
            assert before == leader_epoch, f"{partition} led in epoch {before}, not {leader_epoch}"
        for partition, leader_epoch in change.elected:
            assert led.get(partition, -1) < leader_epoch, (
                f"{partition} leads in epoch {led[partition]}"
            )
            led[partition] = leader_epoch
        if change.elected or change.resigned:
            for on_change in tuple(self._subscribers):
                on_change(change)
