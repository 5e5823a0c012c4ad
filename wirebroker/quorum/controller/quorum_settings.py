"""The timeouts and sizes of the quorum from the configuration (`controller.quorum.*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings

if TYPE_CHECKING:
    from wirebroker.config import Config


def quorum_settings(config: Config) -> QuorumSettings:
    """Return the settings of a replica."""
    return QuorumSettings(
        election_timeout_ms=config.int("controller.quorum.election.timeout.ms"),
        fetch_timeout_ms=config.int("controller.quorum.fetch.timeout.ms"),
        election_backoff_max_ms=config.int("controller.quorum.election.backoff.max.ms"),
        request_timeout_ms=config.int("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.int("controller.quorum.retry.backoff.ms"),
        fetch_max_bytes=config.int("controller.quorum.fetch.max.bytes"),
        fetch_snapshot_max_bytes=config.int("controller.quorum.fetch.snapshot.max.bytes"),
        is_auto_join=config.bool("controller.quorum.auto.join.enable"),
    )
