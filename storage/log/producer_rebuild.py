"""The producer state of a log, rebuilt from the newest usable snapshot and the batches after it.

Source: Kafka's UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.log.producers.producer_replay import ProducerReplay

if TYPE_CHECKING:
    from wirebroker.storage.log.bounds import LogBounds
    from wirebroker.storage.log.producers.producer_state import ProducerState


def rebuild_producer_state(log: LogBounds, *, end_offset: int, now_ms: int) -> None:
    """Rebuild the producer state at `end_offset` and write its snapshot."""
    state = log.producer_state
    state.reload(log_start_offset=log.log_start_offset, end_offset=end_offset, now_ms=now_ms)
    replay_producers(log, end_offset)
    state.end_offset = end_offset
    state.take_snapshot()


def replay_producers(log: LogBounds, end_offset: int) -> None:
    """Apply the log's batches from the end of its producer state up to `end_offset`."""
    replay_into(log.producer_state, log, end_offset)


def replay_into(state: ProducerState, log: LogBounds, end_offset: int) -> None:
    """Apply the log's batches from the end of `state` up to `end_offset`."""
    replay = ProducerReplay(state)
    for segment in log.segments.since(state.end_offset):
        if max(segment.base_offset, state.end_offset) >= end_offset:
            break
        first_batch = segment.position_for_offset(state.end_offset)
        if first_batch is not None:
            replay.walk(segment.log, first_batch[0], segment.size, end_offset)
    replay.finish(max(state.end_offset, end_offset))
