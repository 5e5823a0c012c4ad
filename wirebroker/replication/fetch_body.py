"""A follower's Fetch requests: who fetches, with which limits, and the fields."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import Clock  # noqa: TC001 - compiled tuples look for it
from wirebroker.quotas.replication_quotas import ReplicationQuota  # noqa: TC001 - likewise
from wirebroker.replica.partition import Partition  # noqa: TC001 - likewise
from wirebroker.replication.peers import Peers  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.replication.fetch_session_handler import SessionRequest

# From this version of Fetch on the replica id is in a tagged field (KIP-903).
_REPLICA_STATE_VERSION: Final = 15


class FetchSettings(NamedTuple):
    """The configs replica.fetch.* and replica.socket.timeout.ms."""

    wait_ms: int
    min_bytes: int
    partition_bytes: int
    most_bytes: int
    backoff_s: float
    timeout_s: float

    @classmethod
    def from_config(cls, config: Config) -> FetchSettings:
        """Read the configs."""
        return cls(
            wait_ms=config.int("replica.fetch.wait.max.ms"),
            min_bytes=config.int("replica.fetch.min.bytes"),
            partition_bytes=config.int("replica.fetch.max.bytes"),
            most_bytes=config.int("replica.fetch.response.max.bytes"),
            backoff_s=config.int("replica.fetch.backoff.ms") / 1000,
            timeout_s=config.int("replica.socket.timeout.ms") / 1000,
        )


class Follower(NamedTuple):
    """The node that fetches."""

    node_id: int
    broker_epoch: Callable[[], int]
    peers: Peers
    clock: Clock
    # Called when a write to a partition fails.
    disk_failed: Callable[[Partition, OSError], None]
    quota: ReplicationQuota


def fetch_body(
    request: SessionRequest, version: int, follower: Follower, settings: FetchSettings
) -> dict[str, Any]:
    """Return the fields of a follower's Fetch request."""
    if version >= _REPLICA_STATE_VERSION:
        replica_fields: dict[str, Any] = {
            "replica_state": {
                "replica_id": follower.node_id,
                "replica_epoch": follower.broker_epoch(),
            }
        }
    else:
        replica_fields = {"replica_id": follower.node_id}
    topics: dict[bytes, list[dict[str, Any]]] = {}
    for (topic_id, index), requested in request.asked.items():
        topics.setdefault(topic_id, []).append(
            {
                "partition": index,
                "current_leader_epoch": requested.leader_epoch,
                "fetch_offset": requested.fetch_offset,
                "last_fetched_epoch": requested.last_fetched_epoch,
                "log_start_offset": requested.log_start_offset,
                "partition_max_bytes": settings.partition_bytes,
            }
        )
    forgotten: dict[bytes, list[int]] = {}
    for topic_id, index in request.forgotten:
        forgotten.setdefault(topic_id, []).append(index)
    return {
        **replica_fields,
        "max_wait_ms": settings.wait_ms,
        "min_bytes": settings.min_bytes,
        "max_bytes": settings.most_bytes,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "topics": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
        "forgotten_topics_data": [
            {"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in forgotten.items()
        ],
    }
