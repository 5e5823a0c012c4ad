"""Metrics of this node as a replica of the metadata log, under Kafka's names.

Source: Kafka's KafkaRaftMetrics; the names: Strimzi's rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.metrics.page import label_texts
from wirebroker.metrics.rows import ShownRow

if TYPE_CHECKING:
    from wirebroker.base.clock import Slices
    from wirebroker.metrics.page import Page
    from wirebroker.quorum.raft.raft_figures import RaftFigures

_RAFT: Final = "kafka_server_raftmetrics_"

STATE_ROWS: Final[tuple[ShownRow[None], ...]] = (
    ShownRow(
        "State of this replica of the metadata log, as a label.",
        lambda _: 1,
        strimzi=f"{_RAFT}current_state",
    ),
)
RAFT_ROWS: Final[tuple[ShownRow[RaftFigures], ...]] = (
    ShownRow(
        "Node id of the active controller; -1 if it is unknown.",
        lambda figures: figures.leader_id,
        strimzi=f"{_RAFT}current_leader",
    ),
    ShownRow(
        "Controller that this one voted for in this epoch; -1 if none.",
        lambda figures: figures.vote,
        strimzi=f"{_RAFT}current_vote",
    ),
    ShownRow(
        "Epoch of the metadata quorum.",
        lambda figures: figures.epoch,
        strimzi=f"{_RAFT}current_epoch",
    ),
    ShownRow(
        "Offset after the last metadata record that is known to be committed; -1 if unknown.",
        lambda figures: figures.high_watermark,
        strimzi=f"{_RAFT}high_watermark",
    ),
    ShownRow(
        "Offset after the last metadata record here.",
        lambda figures: figures.log_end_offset,
        strimzi=f"{_RAFT}log_end_offset",
    ),
    ShownRow(
        "Epoch of the last metadata record here.",
        lambda figures: figures.log_end_epoch,
        strimzi=f"{_RAFT}log_end_epoch",
    ),
    ShownRow(
        "Voters of the metadata quorum.",
        lambda figures: figures.voters,
        strimzi=f"{_RAFT}number_of_voters",
    ),
    ShownRow(
        "On the active controller: replicas that fetch the metadata log and do not vote.",
        lambda figures: figures.observers,
        strimzi=f"{_RAFT}number_of_observers",
    ),
    ShownRow(
        "On the active controller: whether a change of the voters is not committed yet.",
        lambda figures: figures.has_uncommitted_voters,
        strimzi=f"{_RAFT}uncommitted_voter_change",
    ),
    ShownRow(
        "Voters without a known address.",
        lambda figures: figures.unknown_voters,
        strimzi=f"{_RAFT}number_unknown_voter_connections",
    ),
    ShownRow(
        "Average time of recent commits of metadata records, in milliseconds.",
        lambda figures: figures.commit_average_ms,
        strimzi=f"{_RAFT}commit_latency_avg",
    ),
    ShownRow(
        "Longest time of recent commits of metadata records, in milliseconds.",
        lambda figures: figures.commit_highest_ms,
        strimzi=f"{_RAFT}commit_latency_max",
    ),
    ShownRow(
        "Average time of recent elections that this voter began, in milliseconds.",
        lambda figures: figures.election_average_ms,
        strimzi=f"{_RAFT}election_latency_avg",
    ),
    ShownRow(
        "Longest time of recent elections that this voter began, in milliseconds.",
        lambda figures: figures.election_highest_ms,
        strimzi=f"{_RAFT}election_latency_max",
    ),
    ShownRow(
        "Metadata records fetched from the active controller per second.",
        lambda figures: figures.fetched_per_s,
        strimzi=f"{_RAFT}fetch_records_rate",
    ),
    ShownRow(
        "Metadata records appended as the active controller per second.",
        lambda figures: figures.appended_per_s,
        strimzi=f"{_RAFT}append_records_rate",
    ),
)


async def add_raft(page: Page, figures: RaftFigures, slices: Slices) -> None:
    """Add the figures of a replica."""
    state = label_texts((("current_state", figures.state),))
    await slices.run(page.add(STATE_ROWS, [(state, None)]))
    await slices.run(page.add(RAFT_ROWS, [(label_texts(()), figures)]))
