"""The state of one partition of `__consumer_offsets`: its groups and their committed offsets.

The rooms beside this file hold the rules; each is a function of (shard, request, token, moment):

    group_join  group_sync  group_heartbeat  group_leave     membership
    group_rebalance, group_static_member                     what they share
    group_offsets  group_expiry                              OffsetCommit, -Fetch, -Delete, expiry
    group_admin                                              List-, Describe-, DeleteGroups

Durable state changes in `replay` alone. States and soft state as tables: coordinator/GROUPS.md.

Source: Kafka's GroupCoordinatorShard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import (
    GroupKey,
    UnknownKey,
    decode_group_metadata,
    decode_key,
    is_partition_suffix,
)
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.record_batch import NO_PRODUCER_ID
from wirebroker.coordinator import group_rebalance as rebalance
from wirebroker.coordinator.classic_group import ClassicGroup, GroupState
from wirebroker.coordinator.foreign_groups import ForeignGroups
from wirebroker.coordinator.group_metrics import Rebalances
from wirebroker.coordinator.group_offsets import GroupOffsets
from wirebroker.coordinator.runtime import Moment, Outcome, Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.coordinator.group_settings import GroupSettings

_OFFSET_KINDS: Final = (b"\x00\x01", b"\x00\x00")


class GroupShard:
    """The groups whose ids hash to one partition."""

    __slots__ = (
        "foreign",
        "groups",
        "new_uuid",
        "offsets",
        "rebalances",
        "settings",
        "timers",
    )

    def __init__(self, settings: GroupSettings, *, new_uuid: Callable[[], str]) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = GroupOffsets()
        self.timers = Timers()
        self.rebalances = Rebalances()
        # Newer kinds of groups, which are not served here. No id is in both.
        self.foreign = ForeignGroups()

    # -- records -----------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Take over a record that is in the log; only offsets are committed in transactions.

        Raises:
            KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: It cannot be read.
        """
        if key[:2] in _OFFSET_KINDS:
            # A million of these are replayed at a start: the key is cut, not decoded.
            end = 4 + int.from_bytes(key[2:4])
            suffix = key[end:]
            if not is_partition_suffix(suffix):
                raise MalformedFrameError("a committed offset's key has the wrong length")
            self.replay_offset(key[4:end].decode(), suffix, value, producer_id)
            return
        decoded = decode_key(key)
        if isinstance(decoded, GroupKey):
            self._replay_group(decoded.group_id, value)
        elif isinstance(decoded, UnknownKey):
            group_id = self.foreign.replay(decoded.kind, key, value)
            if group_id is not None:
                # The commits of a group that comes before its own record make a simple one.
                self._remove_group(group_id)

    def replay_offset(
        self,
        group_id: str,
        suffix: bytes,
        value: bytes | None,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Take over a commit or its tombstone (None); `suffix` is the end of the record's key."""
        if value is None:
            self.offsets.remove(group_id, suffix)
            return
        if group_id not in self.groups and group_id not in self.foreign.by_id:
            # Commits without membership make a simple group: empty, and of no protocol type.
            self.groups[group_id] = ClassicGroup(group_id, timestamp_ms=-1)
        if producer_id == NO_PRODUCER_ID:
            self.offsets.put(group_id, suffix, value)
        else:
            self.offsets.pending.put(producer_id, group_id, suffix, value)

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Take over the end of a producer's transaction."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        self.foreign.remove(group_id)
        if value is None:
            self._remove_group(group_id)
            return
        group = self.groups.get(group_id)
        metadata: Any = decode_group_metadata(value)
        if group is None:
            timestamp_ms = metadata.current_state_timestamp
            group = self.groups[group_id] = ClassicGroup(group_id, timestamp_ms=timestamp_ms)
        was_stable = group.is_in(GroupState.STABLE)
        group.adopt(metadata)
        if not was_stable and not group.is_in(GroupState.PREPARING_REBALANCE):
            self.rebalances.end(group_id)

    def _remove_group(self, group_id: str) -> None:
        group = self.groups.pop(group_id, None)
        if group is not None:
            rebalance.cancel_group_timers(self, group)

    # -- life --------------------------------------------------------------------------------

    def on_loaded(self, moment: Moment) -> Outcome:
        """Begin to serve what was replayed: every member has a whole session timeout."""
        outcome = Outcome()
        self.rebalances.forget_running()
        for group in self.groups.values():
            for member in group.members.values():
                rebalance.expect_heartbeat(self, group, member, moment)
            if len(group.members) > self.settings.max_size:
                # The limit was lowered; members may commit before they are told to rejoin.
                outcome = outcome.then(rebalance.prepare(self, group, moment))
        return outcome

    def on_unloaded(self) -> Outcome:
        """Answer all who wait: somebody else is their coordinator now, or nobody."""
        outcome = Outcome()
        for group in self.groups.values():
            for member in group.members.values():
                response = {"error_code": ErrorCode.NOT_COORDINATOR}
                if member.awaiting_join is not None:
                    outcome.answer(
                        member.awaiting_join, {"member_id": member.member_id, **response}
                    )
                    group.await_join(member, None)
                if member.awaiting_sync is not None:
                    outcome.answer(member.awaiting_sync, response)
                    member.awaiting_sync = None
        return outcome

    def on_timer(self, event: Any, moment: Moment) -> Outcome:
        """Handle an event that `timers.take_due` gave."""
        match event:
            case rebalance.SessionExpiry():
                return rebalance.on_session_expiry(self, event, moment)
            case rebalance.InitialDelay():
                return rebalance.on_initial_delay(self, event, moment)
            case rebalance.JoinTimeout():
                return rebalance.on_join_timeout(self, event, moment)
            case rebalance.SyncTimeout():
                return rebalance.on_sync_timeout(self, event, moment)
            case _:
                raise AssertionError(f"unknown event: {event!r}")

    def describe(self) -> str:
        """Say in a few words what it holds."""
        return f"{len(self.groups)} groups and {self.offsets.count} offsets"

    def check(self) -> None:
        """Assert the laws of all groups."""
        for group_id, group in self.groups.items():
            assert group.group_id == group_id, "groups go by their ids"
            group.check()
        known = self.groups.keys() | self.foreign.by_id.keys()
        assert self.offsets.by_group.keys() <= known, "who commits is a group"
        count = sum(map(len, self.offsets.by_group.values()))
        assert self.offsets.count == count, "offsets are counted"
        assert self.offsets.pending.open.keys() <= known, "who commits is a group"
        self.offsets.pending.check()
