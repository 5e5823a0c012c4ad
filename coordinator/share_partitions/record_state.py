"""The delivery state of records, and its changes.

    AVAILABLE ──acquire──► ACQUIRED ──accept──► ACKNOWLEDGED
        ▲                     │ ├──reject, gap──► ARCHIVED
        └──release, timeout───┘ └──reject, delivery count used up──► ARCHIVING ──► ARCHIVED

ARCHIVING lasts until the records are dead letters (KIP-1191); without dead letters, records become
ARCHIVED directly.

Source: Kafka's RecordState, InFlightState.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

NO_MEMBER: Final = ""
# No acquisition lock.
NO_DEADLINE: Final = 0.0


class RecordState(IntEnum):
    """The state of a record in a share group, numbered as in the persisted state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


class _Before(NamedTuple):
    """What a transition that fails restores."""

    state: RecordState
    delivery_count: int
    member_id: str
    delivery_count_limit: int


class InFlightState:
    """The state of consecutive records that share it.

    Attributes:
        member_id: The owner, or NO_MEMBER.
        deadline_ms: The end of the acquisition lock on the monotonic clock, or NO_DEADLINE.
    """

    __slots__ = (
        "_before",
        "_is_archived",
        "deadline_ms",
        "delivery_count",
        "first_offset",
        "last_offset",
        "member_id",
        "state",
    )

    def __init__(  # noqa: PLR0917 - one for each acquired batch
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        deadline_ms: float = NO_DEADLINE,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self._before: _Before | None = None
        # Archived while a transition was in progress.
        self._is_archived = False

    @property
    def count(self) -> int:
        """The number of offsets."""
        return self.last_offset - self.first_offset + 1

    @property
    def is_available(self) -> bool:
        """Whether the records can be acquired now."""
        return self.state is RecordState.AVAILABLE and self._before is None

    @property
    def is_done(self) -> bool:
        """Whether the state is final, and persisted."""
        return self._before is None and self.state in TERMINAL

    @property
    def is_divisible(self) -> bool:
        """Whether a part of the records may get another state now."""
        return self._before is None and self.state <= RecordState.ACQUIRED

    def acquire(self, member_id: str, deadline_ms: float) -> None:
        """Give available records to a member."""
        assert self.is_available
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def take_back(self) -> None:
        """Undo `acquire`, because the records were not sent."""
        assert self.state is RecordState.ACQUIRED
        self.state = RecordState.AVAILABLE
        self.delivery_count -= 1
        self.member_id = NO_MEMBER
        self.deadline_ms = NO_DEADLINE

    def change(self, new_state: RecordState, *, limit: int, has_dead_letters: bool) -> bool:
        """Take acquired records from their owner; return False if the state does not allow it.

        Records whose delivery count has reached the limit are not available again.
        """
        if self._before is not None:
            return False
        if new_state is RecordState.AVAILABLE and self.delivery_count >= limit:
            new_state = RecordState.ARCHIVING if has_dead_letters else RecordState.ARCHIVED
        if self.state in TERMINAL or self.state in {new_state, RecordState.AVAILABLE}:
            return False
        self.state = new_state
        self.member_id = NO_MEMBER
        return True

    def begin(self, new_state: RecordState, *, limit: int, has_dead_letters: bool) -> bool:
        """Change the state until `complete`; return False if the state does not allow it."""
        before = _Before(self.state, self.delivery_count, self.member_id, limit)
        if not self.change(new_state, limit=limit, has_dead_letters=has_dead_letters):
            return False
        self._before = before
        return True

    def complete(self) -> None:
        """Make the transition final, because it is persisted."""
        self.deadline_ms = NO_DEADLINE
        self._before = None

    def undo(self, now_ms: float) -> None:
        """Restore the state before the transition, unless the lock has expired meanwhile."""
        before = self._before
        assert before is not None
        self._before = None
        if self._is_archived:
            self.deadline_ms = NO_DEADLINE
        elif self.deadline_ms != NO_DEADLINE and self.deadline_ms <= now_ms:
            is_used_up = before.delivery_count >= before.delivery_count_limit
            self.state = RecordState.ARCHIVED if is_used_up else RecordState.AVAILABLE
            self.member_id = NO_MEMBER
            self.deadline_ms = NO_DEADLINE
        else:
            self.state = before.state
            self.member_id = before.member_id

    def archive(self) -> None:
        """Archive the records, whatever their state is."""
        self._is_archived = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.deadline_ms = NO_DEADLINE

    def split(self, offset: int) -> InFlightState:
        """Keep the records below `offset`; return the others, with the same state."""
        assert self.first_offset < offset <= self.last_offset
        assert self._before is None
        rest = InFlightState(
            offset,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.member_id,
            self.deadline_ms,
        )
        rest._is_archived = self._is_archived
        self.last_offset = offset - 1
        return rest

    def is_like(self, other: InFlightState) -> bool:
        """Return whether two neighbors may become one.

        Dead letters refer to their records while these are ARCHIVING.
        """
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.deadline_ms == other.deadline_ms
            and self._before is None
            and other._before is None
            and self.state is not RecordState.ARCHIVING
            and self._is_archived == other._is_archived
        )
