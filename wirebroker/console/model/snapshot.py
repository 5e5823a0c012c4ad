"""The state of a cluster at a time, as the pages show it: immutable values."""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.model.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.client_metrics.broker_clients import BrokerClients
    from wirebroker.console.model.group_info import GroupInfo
    from wirebroker.console.model.topic_info import TopicInfo

_NONE: Final[Mapping[str, GroupInfo]] = MappingProxyType({})


class ClusterStatus(Enum):
    """Whether a cluster responds."""

    CONNECTING = "connecting"
    OK = "ok"
    FAILED = "failed"


class ProblemLevel(Enum):
    """Severity of a problem; UNKNOWN if it could not be checked."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"


class Failure(NamedTuple):
    """Why a cluster cannot be read, and what to do; times are ms since 1970."""

    what: str
    next_step: str
    since_ms: int


class ClusterProblem(NamedTuple):
    """A problem, with its cause, and what to do.

    Attributes:
        kind: partition, topic, broker, quorum, group, transaction, disk, cluster or permission.
        names: The affected topics, groups, brokers or transactional ids, at most 20.
    """

    level: ProblemLevel
    kind: str
    what: str
    next_step: str
    names: tuple[str, ...] = ()


class LogDirInfo(NamedTuple):
    """A log directory of a broker; see LogDir of the client."""

    path: str
    error: str | None
    replica_count: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None


class BrokerInfo(NamedTuple):
    """A broker; None if unknown.

    Attributes:
        size_bytes: Of its logs.
        version: The oldest release that serves its requests, such as `4.4`.
    """

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool
    is_controller: bool
    leader_count: int
    replica_count: int
    size_bytes: int | None
    log_dirs: tuple[LogDirInfo, ...]
    version: str | None


class QuorumNode(NamedTuple):
    """A node that has the metadata log; see QuorumReplica of the client."""

    node_id: int
    is_voter: bool
    end_offset: int
    lag: int
    lag_ms: int | None
    directory_id: str
    endpoints: tuple[str, ...]
    fetched_ms: int | None
    caught_up_ms: int | None


class QuorumInfo(NamedTuple):
    """The quorum of controllers; with a `failure`, the rest is what was last read, or empty."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    nodes: tuple[QuorumNode, ...]
    failure: str | None


class ClusterSnapshot(NamedTuple):
    """A cluster at a time.

    After a failure the last values remain, with `status` FAILED and `failure` set.

    Attributes:
        number: Rises with each snapshot.
        taken_ms: Time of the newest values (ms since 1970); 0 if nothing was read yet.
        status: Whether the cluster responds.
        is_complete: Whether each kind of values but the brokers' metrics was read, or tried to be
            read, at least once.
        lag: Of all groups.
        hidden: What this user may not see, in a sentence; None if everything is visible.
        clients: The clients of the brokers with a metrics page.
    """

    name: str
    number: int = 0
    taken_ms: int = 0
    status: ClusterStatus = ClusterStatus.CONNECTING
    is_complete: bool = False
    failure: Failure | None = None
    cluster_id: str | None = None
    controller_id: int | None = None
    brokers: Mapping[int, BrokerInfo] = MappingProxyType({})
    quorum: QuorumInfo | None = None
    topics: Mapping[str, TopicInfo] = MappingProxyType({})
    groups: Mapping[str, GroupInfo] = _NONE
    problems: tuple[ClusterProblem, ...] = ()
    records_per_s: float | None = None
    bytes_per_s: float | None = None
    lag: int | None = None
    partition_count: int = 0
    leaderless_count: int = 0
    under_replicated_count: int = 0
    size_bytes: int | None = None
    hidden: str | None = None
    clients: Mapping[int, BrokerClients] = MappingProxyType({})
    history: History = History()
