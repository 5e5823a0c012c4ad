"""The fate of each record of a share group, at the end of a schedule.

Each record that the group may read is acknowledged, or archived because it was rejected or its
deliveries are used up. With dead letters, each archived one has a dead letter, unless the broker
reported that it could not write it; and no other record has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.simulation.cluster.share_deliveries import ACKNOWLEDGED, ARCHIVED, ARCHIVING
from tests.simulation.cluster.share_state_log import replay
from tests.support.records.batches import records_in
from tests.support.replicas.broker_cluster import stored
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE, partition_for
from wirebroker.coordinator.share_partitions.acknowledgement import AckType

if TYPE_CHECKING:
    from tests.simulation.cluster.share_state_log import PersistedOffsets
    from tests.simulation.cluster.share_world import ShareWorld
    from wirebroker.coordinator.share_state.state import SharePartitionKey

_OFFSET: Final = "__dlq.errors.offset"
_PARTITION: Final = "__dlq.errors.partition"


class Outcomes:
    """The records of all groups; their numbers by outcome are added to the world's answers."""

    def __init__(self, world: ShareWorld) -> None:
        self._world = world
        self._limit = world.deliveries.limit

    def check(self) -> None:
        world = self._world
        persisted: dict[SharePartitionKey, PersistedOffsets] = {}
        for index in range(2):
            persisted.update(replay(stored(world._replicas(index, SHARE_GROUP_STATE)[0])))
        for key, offsets in persisted.items():
            self._check_coordinator(key, offsets)
            self._check_records(key, offsets)
        self._check_dead_letters(persisted)

    def _check_coordinator(self, key: SharePartitionKey, offsets: PersistedOffsets) -> None:
        world = self._world
        index = partition_for(str(key), 2)
        node = world.sharing_member(world.state(index, SHARE_GROUP_STATE).leader)
        state = None if node is None else node.persisted(key)
        assert state is not None, f"the state of {key} is not loaded"
        offsets.check_same(str(key), state)

    def _readable(self, key: SharePartitionKey) -> dict[int, bool]:
        """Return by offset of each data record whether it was aborted."""
        world = self._world
        log = stored(world._replicas(key.partition)[0])
        return {
            record.offset: record.value in world.aborted
            for header, record in records_in(log)
            if not header.is_control
        }

    def _check_records(self, key: SharePartitionKey, offsets: PersistedOffsets) -> None:
        reads_committed = key.group_id == "s1"
        for offset, is_aborted in self._readable(key).items():
            name = f"{offset} of {key}"
            record = self._world.deliveries.record(key, offset)
            state, count = offsets.last_states.get(offset, (-1, 0))
            deliveries = max(count, record.highest)
            outcome = "?"
            if is_aborted and reads_committed:
                assert not record.grants, f"{name} is granted, but was aborted"
                outcome = "aborted"
            elif state == ACKNOWLEDGED:
                assert AckType.ACCEPT in record.attempted, f"{name}: no client accepted it"
                outcome = "accepted"
            elif AckType.REJECT in record.attempted and state in {ARCHIVED, ARCHIVING}:
                outcome = "rejected"
            elif deliveries >= self._limit:
                outcome = "used up"
            assert outcome != "?", (
                f"{name} is lost: state {state}, {deliveries} deliveries, "
                f"{sorted(record.attempted)} were sent"
            )
            self._world.answers[f"record {outcome}"] += 1

    def _check_dead_letters(self, persisted: dict[SharePartitionKey, PersistedOffsets]) -> None:
        world = self._world
        letters: set[tuple[int, int]] = set()
        for index in range(2):
            for _, record in records_in(stored(world._replicas(index, "dlq.t")[0])):
                headers = {name: value or b"" for name, value in record.headers}
                letters.add((int(headers[_PARTITION]), int(headers[_OFFSET])))
        failures = world.failed_dead_letters()
        for key, offsets in persisted.items():
            if key.group_id != "s1":
                continue
            for offset, (state, count) in offsets.last_states.items():
                attempted = world.deliveries.record(key, offset).attempted
                is_used_up = count >= self._limit and AckType.GAP not in attempted
                is_dead = AckType.REJECT in attempted or is_used_up
                if state == ARCHIVED and is_dead and not failures:
                    assert (key.partition, offset) in letters, f"{offset} of {key}: no dead letter"
            for partition, offset in letters:
                lost = world.deliveries.record(key, offset)
                is_dead = AckType.REJECT in lost.attempted or lost.highest >= self._limit
                assert partition != key.partition or is_dead, f"{offset} of {key}: a dead letter"
        world.answers["dead letters"] += len(letters)
