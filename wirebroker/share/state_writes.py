"""Writes of share partitions: equal neighbors are joined, long ones divided.

The share coordinator joins equal neighbors too, so the stored state is the same. The parts of a
write are stored one after the other. If one fails, the earlier ones stay: as after a write whose
response is lost, the share coordinator may then know more than the share partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.share_state.state import StateBatch, StateWrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.share_partition import SharePartition

# The share coordinator needs 4 us for a batch, without a break.
MOST_BATCHES: Final = 1_000
# Batches before other work may run.
_STEP: Final = 200


def write_of(state: SharePartition, batches: Sequence[StateBatch]) -> Steps[StateWrite]:
    """Return the write of new states of a share partition."""
    joined: list[StateBatch] = []
    last: StateBatch | None = None
    for count, batch in enumerate(sorted(batches), 1):
        if last is not None and last[2:] == batch[2:] and last.last_offset + 1 == batch[0]:
            joined[-1] = last = StateBatch(last.first_offset, *batch[1:])
        else:
            joined.append(batch)
            last = batch
        if count % _STEP == 0:
            yield
    return StateWrite(
        state.state_epoch,
        state.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
        tuple(joined),
    )


def parts_of(written: StateWrite) -> list[StateWrite]:
    """Return a write as several ones that are short enough."""
    batches = written.batches
    if len(batches) <= MOST_BATCHES:
        return [written]
    return [
        written._replace(batches=batches[start : start + MOST_BATCHES])
        for start in range(0, len(batches), MOST_BATCHES)
    ]
