"""The quorum in the configuration (`controller.quorum.*`): timeouts, sizes, static voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.config.quorum import voters_of
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.voter_set import VoterSet

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


def static_voters(config: Config, listener_name: str) -> VoterSet:
    """Return the voters that `controller.quorum.voters` names; none without that setting."""
    return VoterSet(
        Voter(node_id, ZERO_UUID, (VoterEndpoint(listener_name, host, port),), 0, 1)
        for node_id, (host, port) in voters_of(config).items()
    )
