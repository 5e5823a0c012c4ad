"""Checks of what the leaders of share partitions grant and confirm (KIP-932).

    grant          a response that a leader is about to send gives a record to a member
    attempt        a request with acknowledgements has reached a leader
    confirmation   the leader is about to respond to it without an error

Laws, for each record of a group:

- In one leader epoch a record has one owner, until its lock expires, it is acknowledged, or its
  session ends.
- An acknowledgement is confirmed only to the owner, and not after its lock has expired.
- A record whose acceptance or rejection is confirmed is not granted in that or a later epoch.
- After a confirmed release, and after what is persisted, later delivery counts are higher.
- No delivery count exceeds the limit.

As in Apache Kafka, a response may leave after the locks of its records have ended, because it waits
until acknowledgements of the same request are stored; such a grant is late and excludes no other.
And a leader that does not know yet that its epoch is over may grant a record that
its successor has granted as well. Leader epochs of a request are those before and after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.share_partitions.acknowledgement import AckType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.coordinator.share_state.stored_state import StoredState

# Timers may be late by this: a tick of the locks, and slow steps.
_LATE_S: Final = 0.1
# Nodes keep the time of locks in milliseconds, which is rounded differently.
_ROUNDING_S: Final = 1e-9
_FINAL: Final = frozenset({AckType.ACCEPT, AckType.REJECT, AckType.GAP})
# States of persisted records.
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
ARCHIVED: Final = 4


class Epochs(NamedTuple):
    """The leader epochs between which something has happened."""

    first: int
    last: int


class Owner(NamedTuple):
    """A member on one run of a node."""

    node: object
    member_id: str


@dataclass
class Grant:
    """One delivery of one record."""

    owner: Owner
    epochs: Epochs
    delivery_count: int
    granted_s: float
    # Bounds of the end of the lock.
    earliest_end_s: float
    latest_end_s: float
    is_over: bool = False

    @property
    def is_late(self) -> bool:
        """Whether its lock may have ended before the response left."""
        return self.earliest_end_s <= self.granted_s + _ROUNDING_S

    def renew(self, earliest_end_s: float, latest_end_s: float) -> None:
        self.earliest_end_s = max(self.earliest_end_s, earliest_end_s)
        self.latest_end_s = max(self.latest_end_s, latest_end_s)


@dataclass
class _Record:
    """One record of one group.

    Attributes:
        done: The leader epochs of confirmed acceptances and rejections.
        released: The leader epoch and delivery count of the highest confirmed release.
        attempted: The acknowledgement types that members have sent.
        highest: The highest delivery count, of responses that were not sent as well.
    """

    grants: list[Grant] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    released: tuple[int, int] = (-1, 0)
    attempted: set[int] = field(default_factory=set)
    highest: int = 0


class Attempt(NamedTuple):
    """A request with acknowledgements of one share partition.

    It may begin much later than it was sent if its node is frozen, but before locks expire there.
    """

    key: SharePartitionKey
    owner: Owner
    types: Mapping[int, int]
    sent_s: float
    begun_s: float
    start_offset: int
    # The grants that it may end.
    grants: Mapping[int, Grant | None]
    # Whether another request of the member may just acquire the same records.
    is_fetching: bool


class ShareDeliveries:
    """All records of all groups.

    Attributes:
        lock_s: The duration of acquisition locks.
        limit: The delivery count limit.
        granted: The number of granted records.
        confirmed: The number of confirmed acceptances and rejections.
        refused_late: The number of refused acknowledgements after the end of a lock.
    """

    def __init__(self, lock_s: float, limit: int) -> None:
        self.lock_s = lock_s
        self.limit = limit
        self.granted = 0
        self.confirmed = 0
        self.refused_late = 0
        self.renewed = 0
        self._records: dict[tuple[SharePartitionKey, int], _Record] = {}

    def record(self, key: SharePartitionKey, offset: int) -> _Record:
        return self._records.setdefault((key, offset), _Record())

    # -- grants ----------------------------------------------------------------------------------

    def grant(
        self,
        key: SharePartitionKey,
        owner: Owner,
        acquired: Iterable[tuple[int, int, int]],
        *,
        epochs: Epochs,
        requested_s: float,
        now_s: float,
    ) -> None:
        """Note acquired records: (first offset, last offset, delivery count)."""
        for first_offset, last_offset, delivery_count in acquired:
            for offset in range(first_offset, last_offset + 1):
                grant = Grant(
                    owner,
                    epochs,
                    delivery_count,
                    now_s,
                    requested_s + self.lock_s,
                    now_s + self.lock_s,
                )
                record = self.record(key, offset)
                self._check_grant(f"{offset} of {key}", record, grant)
                record.grants.append(grant)
                record.highest = max(record.highest, delivery_count)
                self.granted += 1

    def unsent(self, key: SharePartitionKey, acquired: Iterable[tuple[int, int, int]]) -> None:
        """Note the acquired records of a response whose connection has ended."""
        for first_offset, last_offset, delivery_count in acquired:
            for offset in range(first_offset, last_offset + 1):
                record = self.record(key, offset)
                record.highest = max(record.highest, delivery_count)

    def _check_grant(self, name: str, record: _Record, grant: Grant) -> None:
        count, epochs = grant.delivery_count, grant.epochs
        assert 1 <= count <= self.limit, f"delivery {count} of {name} is beyond the limit"
        if grant.is_late:
            return
        for epoch in record.done:
            assert epochs.first < epoch, (
                f"{name} is granted in epoch {epochs.first}, confirmed as done in {epoch}"
            )
        epoch, released_count = record.released
        assert epochs.first < epoch or count > released_count, (
            f"the delivery count of {name} falls: {count} after {released_count}"
        )
        for other in record.grants:
            is_same_epoch = other.epochs == epochs and epochs.first == epochs.last
            if is_same_epoch and not other.is_over:
                assert other.earliest_end_s <= grant.granted_s + _ROUNDING_S, (
                    f"{name} is granted to {grant.owner.member_id}, "
                    f"but {other.owner.member_id} has it"
                )

    @staticmethod
    def check_persisted(
        key: SharePartitionKey, acquired: Iterable[tuple[int, int, int]], state: StoredState
    ) -> None:
        """Check grants against the state that the current share coordinator has."""
        for first_offset, last_offset, delivery_count in acquired:
            assert first_offset >= state.start_offset, f"{first_offset} of {key} is granted again"
            for batch in state.batches:
                if batch.first_offset <= last_offset and first_offset <= batch.last_offset:
                    assert delivery_count > batch.delivery_count, (
                        f"delivery {delivery_count} of {first_offset}-{last_offset} of {key}: "
                        f"the count falls, {batch} is persisted"
                    )

    def session_ended(self, owner: Owner) -> None:
        """Note that a member's records on a node may be granted to others."""
        for record in self._records.values():
            for grant in record.grants:
                if grant.owner == owner:
                    grant.is_over = True

    # -- acknowledgements ------------------------------------------------------------------------

    def attempt(
        self,
        key: SharePartitionKey,
        owner: Owner,
        types: Mapping[int, int],
        *,
        start_offset: int,
        sent_s: float,
        now_s: float,
        is_fetching: bool,
    ) -> Attempt:
        """Note that a request has arrived; `types` has the acknowledgement type by offset."""
        grants: dict[int, Grant | None] = {}
        for offset, ack_type in types.items():
            record = self.record(key, offset)
            record.attempted.add(ack_type)
            own = [grant for grant in record.grants if grant.owner == owner]
            grants[offset] = own[-1] if own else None
            for grant in own if ack_type != AckType.RENEW else ():
                grant.is_over = True
        return Attempt(key, owner, types, sent_s, now_s, start_offset, grants, is_fetching)

    def refused(self, attempt: Attempt) -> None:
        """Note an attempt that got an error."""
        self.refused_late += any(
            grant is not None and grant.latest_end_s < attempt.sent_s
            for grant in attempt.grants.values()
        )

    def confirm(self, attempt: Attempt, *, epochs: Epochs, start_offset: int, now_s: float) -> None:
        """Note a confirmation; acknowledgements below the start offset have no effect."""
        start_offset = max(start_offset, attempt.start_offset)
        for offset, ack_type in attempt.types.items():
            if offset >= start_offset:
                self._confirm(attempt, offset, ack_type, epochs, now_s)

    def _confirm(
        self, attempt: Attempt, offset: int, ack_type: int, epochs: Epochs, now_s: float
    ) -> None:
        name = f"{offset} of {attempt.key}"
        record, grant = self.record(attempt.key, offset), attempt.grants[offset]
        if not attempt.is_fetching:
            assert grant is not None, f"{attempt.owner.member_id} got no {name} to acknowledge"
            assert attempt.sent_s <= grant.latest_end_s + _LATE_S, (
                f"the acknowledgement of {name} is confirmed, but its lock has expired"
            )
        count = record.highest if grant is None else grant.delivery_count
        if ack_type == AckType.RENEW:
            if grant is not None:
                grant.renew(attempt.begun_s + self.lock_s, now_s + self.lock_s)
            self.renewed += 1
        elif ack_type in _FINAL or count >= self.limit:
            self.confirmed += 1
            record.done.append(epochs.last)
            _check_no_later_grant(name, record.grants, attempt.begun_s, epochs)
        elif not attempt.is_fetching:
            record.released = max(record.released, (epochs.last, count))


def _check_no_later_grant(
    name: str, grants: Sequence[Grant], begun_s: float, epochs: Epochs
) -> None:
    """Check that a record was not granted after the acknowledgement that is now confirmed."""
    for grant in grants:
        is_same = grant.epochs == epochs and epochs.first == epochs.last
        is_later = grant.epochs.first > epochs.last or (is_same and grant.granted_s > begun_s)
        assert not is_later or grant.is_late, (
            f"{name} was granted to {grant.owner.member_id} in epoch {grant.epochs.first}, and "
            f"then confirmed as done in {epochs.last}"
        )
