"""The timeouts and limits of a quorum, with Kafka's defaults.

Source: Kafka's QuorumConfig (`controller.quorum.*`) and KafkaRaftClient.
"""

from __future__ import annotations

from typing import NamedTuple


class QuorumSettings(NamedTuple):
    """Settings of one replica; see Kafka's configs of the same names.

    Attributes:
        fetch_max_wait_ms: How long the leader may hold a fetch that has nothing to return.
    """

    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    is_auto_join: bool = False

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader leads without hearing from a majority."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader announces itself to voters that do not fetch."""
        return self.fetch_timeout_ms // 2
