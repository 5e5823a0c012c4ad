"""The state machine of one partition of `__consumer_offsets`: groups and committed offsets.

Other modules have the operations, functions of (shard, request, token, now).

Source: Kafka's GroupCoordinatorShard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import GroupKey, is_partition_suffix
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    KnownRecord,
    RegularExpressionKey,
    WholeGroupKey,
    decode_record_key,
)
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_group import NO_TIMESTAMP, ClassicGroup
from wirebroker.coordinator.groups.classic.classic_timers import (
    InitialDelay,
    JoinTimeout,
    SessionExpiry,
    SyncTimeout,
)
from wirebroker.coordinator.groups.shard.group_offsets import GroupOffsets
from wirebroker.coordinator.groups.shard.kinds import (
    is_any_loaded,
    kind_of_record,
    kind_of_timer,
    loaded_kinds,
)
from wirebroker.coordinator.groups.topic_hashes import TopicHashes
from wirebroker.coordinator.outcome import Moment, Outcome, Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings

    _TimerHandler = Callable[["GroupShard", Any, Moment], Outcome]

_OFFSET_KINDS: Final = (b"\x00\x01", b"\x00\x00")


class GroupShard:
    """The groups whose ids hash to one partition.

    Attributes:
        image: The metadata that this node has applied.
        new_topics_offset: Metadata offset of the last change that created topics.
        topic_hashes: Hashes of the topics that consumer and share groups subscribe to.
    """

    __slots__ = (
        "_new_uuid",
        "groups",
        "image",
        "new_topics_offset",
        "offsets",
        "settings",
        "timers",
        "topic_hashes",
    )

    def __init__(
        self, settings: GroupSettings, image: ClusterImage, *, new_uuid: Callable[[], str]
    ) -> None:
        self.settings = settings
        self.image = image
        self.new_topics_offset = image.offset
        self.topic_hashes = TopicHashes(image)
        self._new_uuid = new_uuid
        self.groups: dict[str, Group] = {}
        self.offsets = GroupOffsets()
        self.timers = Timers()

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that all members joined with."""
        return sum(group.metadata_bytes for group in self.groups.values())

    def new_uuid(self) -> str:
        """Return a new member id."""
        return self._new_uuid()

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return a group if it is classic."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def apply(self, records: Sequence[CoordinatorRecord], producer_id: int) -> None:
        """Replay appended records."""
        for record in records:
            known = record.body if isinstance(record, KnownRecord) else None
            self.replay(record.key, record.value, producer_id, known)

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        producer_id: int = NO_PRODUCER_ID,
        known: Any = None,
    ) -> None:
        """Apply a record of the log; only offsets are in transactions.

        `known` is the decoded value, if it is known.

        Raises:
            KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed record.
        """
        if key[:2] in _OFFSET_KINDS:
            # Fast path for a million records at start: the key is sliced, not decoded.
            end = 4 + int.from_bytes(key[2:4])
            suffix = key[end:]
            if not is_partition_suffix(suffix):
                raise MalformedFrameError("a committed offset's key has the wrong length")
            self.replay_offset(key[4:end].decode(), suffix, value, producer_id)
            return
        decoded = decode_record_key(key)
        if isinstance(decoded, GroupKey):
            self._replay_group(decoded.group_id, value)
            return
        if not isinstance(decoded, WholeGroupKey | GroupMemberKey | RegularExpressionKey):
            return
        kind_of_record(decoded.kind).replay(self, decoded, value, known)

    def replay_offset(
        self,
        group_id: str,
        suffix: bytes,
        value: bytes | None,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Apply a commit or its tombstone; `suffix` is the end of the record's key."""
        if value is None:
            self.offsets.remove(group_id, suffix)
            return
        if group_id not in self.groups:  # inlined check: a million calls
            self.make_simple(group_id)
        if producer_id == NO_PRODUCER_ID:
            self.offsets.put(group_id, suffix, value)
        else:
            self.offsets.pending.put(producer_id, group_id, suffix, value)

    def make_simple(self, group_id: str) -> None:
        """Add an empty group without a protocol, if missing.

        As in Kafka, a request whose commits are all refused adds one too, without a record.
        """
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, timestamp_ms=NO_TIMESTAMP)

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a producer's transaction."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        classic = self.classic(group_id)
        if value is None or classic is None:
            # Of whatever kind: the later record counts.
            replaced = self.groups.pop(group_id, None)
            if replaced is not None:
                replaced.cancel_timers(self.timers)
        if value is None:
            return
        if classic is None:
            classic = ClassicGroup(group_id, timestamp_ms=NO_TIMESTAMP)
            self.groups[group_id] = classic
        classic.adopt(value)

    def start_timers(self, now: Moment) -> Steps[None]:
        """Start the timers of all members of the loaded groups, before `on_loaded`."""
        for kind in loaded_kinds():
            yield from kind.start_timers(self, now)
        yield from rebalance.start_timers(self, now)

    def on_loaded(self, now: Moment) -> Outcome:
        """Begin to serve the loaded state."""
        outcome = rebalance.on_loaded(self, now)
        if is_any_loaded():
            from wirebroker.coordinator.groups.shard import topic_lookup  # noqa: PLC0415

            outcome.effects += topic_lookup.on_loaded(self)
        return outcome

    def apply_metadata(
        self, image: ClusterImage, *, has_new_topics: bool, changed: Iterable[str]
    ) -> None:
        """Apply new metadata; each group notices it at its members' next heartbeats.

        `changed` are topics that were created, deleted, or have other partitions or replicas.
        """
        self.image = image
        self.topic_hashes.follow(image, changed)
        if has_new_topics:
            self.new_topics_offset = image.offset

    def on_unloaded(self) -> Outcome:
        """Return NOT_COORDINATOR responses."""
        outcome = Outcome()
        for group in self.groups.values():
            group.answer_unloaded(outcome)
        return outcome

    def on_timer(self, event: Any, now: Moment) -> Outcome:
        """Handle an event from `timers.take_due`."""
        handler = _ON_TIMER.get(type(event)) or kind_of_timer(event).ON_TIMER[type(event)]
        return handler(self, event, now)

    def describe(self) -> str:
        """Describe the content for the log."""
        return f"{len(self.groups)} groups and {self.offsets.count} offsets"

    def check(self) -> None:
        """Assert the invariants."""
        for group_id, group in self.groups.items():
            assert group.group_id == group_id, "groups are keyed by their ids"
            group.check()
        assert self.offsets.by_group.keys() <= self.groups.keys(), "only groups commit offsets"
        count = sum(map(len, self.offsets.by_group.values()))
        assert self.offsets.count == count, "offsets are counted"
        assert self.offsets.pending.open.keys() <= self.groups.keys(), "only groups commit offsets"
        self.offsets.pending.check()


# Other kinds of groups have their own timers (kinds.py).
_ON_TIMER: Final[Mapping[type[Any], _TimerHandler]] = {
    SessionExpiry: rebalance.on_session_expiry,
    InitialDelay: rebalance.on_initial_delay,
    JoinTimeout: rebalance.on_join_timeout,
    SyncTimeout: rebalance.on_sync_timeout,
}


def decoded_value(key: bytes, value: bytes) -> Any:
    """Decode a record's value for `replay`; return None if `replay` has to decode it.

    This function uses no state, so a thread may call it.

    Raises:
        KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed record.
    """
    if key[:2] in _OFFSET_KINDS:
        return None
    decoded = decode_record_key(key)
    if not isinstance(decoded, WholeGroupKey | GroupMemberKey | RegularExpressionKey):
        return None
    return kind_of_record(decoded.kind).decoded(decoded.kind, value)
