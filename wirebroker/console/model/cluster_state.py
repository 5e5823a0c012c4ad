"""What the collector knows of a cluster; polls change it, `snapshot_builder` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.model.group_info import member_info
from wirebroker.console.model.history import History

if TYPE_CHECKING:
    from wirebroker.client.groups.groups import DescribedConsumers
    from wirebroker.client.transactions.transactions import DescribedTransaction
    from wirebroker.console.client_metrics.broker_clients import BrokerClients
    from wirebroker.console.model.group_info import CommittedOffsets, MemberInfo
    from wirebroker.console.model.samples import SlotNumbers
    from wirebroker.console.model.snapshot import Failure, LogDirInfo, QuorumInfo
    from wirebroker.console.model.topic_info import TopicLayout


class BrokerRow(NamedTuple):
    """A registered broker."""

    host: str
    port: int
    rack: str | None
    is_fenced: bool


# Members that are kept of a group, and committed offsets of all groups (24 MB).
_MOST_MEMBERS: Final = 500
MOST_OFFSETS: Final = 2_000_000


class WatchedGroup:
    """A group as the polls know it; times are ms since 1970.

    Attributes:
        described: Without its members.
        members: The first 500 of `member_count`.
        state_since_ms: When it was first seen in this state.
        is_changed: Whether its members are to be read first.
        described_ms, read_ms: When its members and its offsets were last read; 0 for never.
        progressed_ms: When its committed offsets last changed, as far as it is known.
        error: Why its members or offsets cannot be read.
    """

    __slots__ = (
        "coordinator_id",
        "described",
        "described_ms",
        "error",
        "is_changed",
        "kind",
        "member_count",
        "members",
        "name",
        "progress",
        "progressed_ms",
        "read_ms",
        "state",
        "state_since_ms",
    )

    def __init__(self, name: str, kind: str, now_ms: int) -> None:
        self.name = name
        self.kind = kind
        self.state = ""
        self.coordinator_id = -1
        self.described: DescribedConsumers | None = None
        self.member_count: int | None = None
        self.members: tuple[MemberInfo, ...] | None = None
        self.described_ms = 0
        self.read_ms = 0
        self.error: str | None = None
        self.is_changed = True
        self.progress: CommittedOffsets | None = None
        self.progressed_ms = now_ms
        self.state_since_ms = now_ms

    def take_state(self, state: str, coordinator_id: int, now_ms: int) -> None:
        """Note the state of the group in a list."""
        self.coordinator_id = coordinator_id
        if state != self.state:
            self.state = state
            self.state_since_ms = now_ms
            self.is_changed = True

    def take_description(self, described: DescribedConsumers) -> None:
        """Note the members."""
        self.member_count = len(described.members)
        self.members = tuple(map(member_info, described.members[:_MOST_MEMBERS]))
        self.described = described._replace(members=[])

    def take_progress(self, progress: CommittedOffsets | None) -> None:
        """Note the committed offsets; None if they cannot be kept."""
        before = self.progress
        is_same = (
            before is not None
            and progress is not None
            and before.offsets == progress.offsets
            and before.slots == progress.slots
        )
        if not is_same and progress is not None:
            self.progressed_ms = progress.taken_ms
        self.progress = progress

    @property
    def offset_count(self) -> int:
        """Number of committed offsets that are kept."""
        return 0 if self.progress is None else len(self.progress.slots)


class ClusterState:
    """A cluster.

    Attributes:
        layouts: Topics by name.
        min_isr: min.insync.replicas of topics that are not fully replicated.
        starts: Start offsets of partitions.
        log_dirs: By broker.
        versions: Release of each broker.
        transactions: Those that are open for long.
        refusals: Why parts cannot be read, by poll.
        unreachable: Why brokers cannot be reached, with the time (monotonic).
        is_whole: Whether this user may describe the cluster; None if unknown.
        hidden_topics: Topics that this user may not describe.
        clients: The clients of brokers with a metrics page.
        clients_due: When the metrics page of a broker may be read again (monotonic).
    """

    __slots__ = (
        "_offset_count",
        "brokers",
        "clients",
        "clients_due",
        "cluster_id",
        "controller_id",
        "failure",
        "groups",
        "hidden_topics",
        "history",
        "is_whole",
        "layouts",
        "log_dirs",
        "min_isr",
        "quorum",
        "refusals",
        "starts",
        "taken_ms",
        "transactions",
        "unreachable",
        "versions",
    )

    def __init__(self) -> None:
        self.history = History()
        self.cluster_id: str | None = None
        self.controller_id: int | None = None
        self.brokers: dict[int, BrokerRow] = {}
        self.layouts: dict[str, TopicLayout] = {}
        self.min_isr: dict[str, int] = {}
        self.starts: SlotNumbers | None = None
        self.log_dirs: dict[int, tuple[LogDirInfo, ...]] = {}
        self.versions: dict[int, str] = {}
        self.quorum: QuorumInfo | None = None
        self.groups: dict[str, WatchedGroup] = {}
        self.transactions: list[DescribedTransaction] = []
        self.refusals: dict[str, str] = {}
        self.unreachable: dict[int, tuple[float, str]] = {}
        self.is_whole: bool | None = None
        self.hidden_topics: tuple[str, ...] = ()
        self.clients: dict[int, BrokerClients] = {}
        self.clients_due: dict[int, float] = {}
        self.failure: Failure | None = None
        self.taken_ms = 0
        self._offset_count = 0

    def count_offsets(self) -> None:
        """Count the committed offsets that are kept."""
        self._offset_count = sum(group.offset_count for group in self.groups.values())

    def take_progress(self, group: WatchedGroup, progress: CommittedOffsets) -> bool:
        """Note a group's committed offsets; return False if there are too many."""
        count = self._offset_count - group.offset_count
        is_kept = count + len(progress.slots) <= MOST_OFFSETS
        group.take_progress(progress if is_kept else None)
        self._offset_count = count + group.offset_count
        return is_kept

    def forget_partitions(self) -> None:
        """Drop all numbers of partitions, before they get other slots."""
        self.history.forget_partitions()
        self.starts = None
        for group in self.groups.values():
            group.progress = None
