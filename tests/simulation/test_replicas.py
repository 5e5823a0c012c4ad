"""Replication in deterministic simulation: kills, network partitions, lost requests.

pytest tests/simulation/test_replicas.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.cluster.cluster_schedules import first_failure, run_schedules
from tests.simulation.cluster.replica_world import ReplicaWorld
from tests.simulation.cluster.searched_world import SearchedWorld
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from tests.support.replicas.broker_cluster import stored
from wirebroker.api.data import list_offsets, partition_reads
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.brokers import alter_partition
from wirebroker.replica import offset_search
from wirebroker.replica.leader_role import LeaderRole
from wirebroker.replica.offset_search import search_in_thread
from wirebroker.replica.partition import Partition

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.codecs.errors import ErrorCode, KafkaError
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, PartitionImage
    from wirebroker.storage.log.time_search import TimestampedOffset

SECONDS = 6
_JUDGE = alter_partition._judge

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_acknowledged_records_are_on_all_replicas_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = run_schedules(ReplicaWorld, request, capsys, seconds=SECONDS, name="replicas")
    assert totals["records acknowledged"]


@pytest.mark.timeout(7_200)
def test_searches_by_time_find_the_first_record_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = run_schedules(SearchedWorld, request, capsys, seconds=SECONDS / 2, name="searches")
    assert totals["records found"]


class _LateRecordWorld(ReplicaWorld):
    """A leader appends a record when the replicas have already been at rest."""

    storm_s = 0.5

    async def _calm(self) -> None:
        await super()._calm()
        leader = self.leader(0)
        assert leader is not None
        log = leader.partition().log
        end = log.log_end_offset
        self.processes[leader.node_id].spawn(leader.produce(b"late"))
        while log.log_end_offset == end:
            await pause(0.0001)


def test_replicas_are_compared_when_the_last_record_is_replicated() -> None:
    world = _LateRecordWorld(1)
    world.run()
    for node_id in world.state(0).replicas:
        assert b"late" in stored(world.cluster[node_id].partition())


def test_killed_node_writes_and_sends_nothing() -> None:
    """Its coroutines are closed, which runs their `finally` blocks."""
    world = ReplicaWorld(1)
    received: list[bytes] = []

    async def scene() -> None:
        for node_id in (1, 2):
            await world._start(node_id)
        dialer = world.cluster.dialer(1)
        link: Any = await dialer.dial("node-2", 9092, mock.Mock())
        files = world._files[1]

        async def work() -> None:
            try:
                await pause(1_000)
            finally:
                files.data("/late").write_at(0, b"late")
                link._carry(1, received.append, b"late")

        world.processes[1].spawn(work())
        await pause(1)
        world._bury(1)
        assert not files.exists("/late")
        await pause(10)

    with mock.patch.object(world, "_run", scene):
        world.run()
    assert received == []


def test_restarting_node_does_not_serve_as_its_former_run() -> None:
    world = ReplicaWorld(1)
    accepted: list[bool] = []

    async def scene() -> None:
        for node_id in (1, 2):
            await world._start(node_id)
        former, peer = world.cluster[1], world.cluster.peer(1)
        world._bury(1)
        starting = world.loop.create_task(world._start(1))
        while not starting.done():
            await pause(0.001)
            try:
                await world.cluster.dialer(2).dial("node-1", 9092, mock.Mock())
            except ConnectionRefusedError:
                accepted.append(False)
            else:
                accepted.append(True)
                handler: Any = peer.answers[ApiKey.FETCH]
                assert handler.__self__ is not former

    with mock.patch.object(world, "_run", scene):
        world.run()
    assert set(accepted) == {False, True}


def _first_failure(
    first_seed: int = 0, *, is_late: bool = False, is_hard_on_outsiders: bool = False
) -> str:
    """Return the message of the first schedule that fails.

    Args:
        first_seed: Start near a failing schedule, to save time.
        is_late: Whether leaders' requests to the controller arrive again much later, and nodes that
            join an ISR lead immediately; some faults show only then.
        is_hard_on_outsiders: Whether nodes outside the ISRs die first and lose unsynced data.
    """

    def new_world(seed: int) -> ReplicaWorld:
        world = ReplicaWorld(seed)
        if is_late:
            world.late_rate, world.upset_rate = 0.8, 1.0
        world.is_hard_on_outsiders = is_hard_on_outsiders
        return world

    return first_failure(new_world, first_seed=first_seed, plenty=400)


@pytest.mark.nightly
def test_detects_high_watermark_that_waits_for_no_follower() -> None:
    def at_once(_role: LeaderRole, log_end_offset: int, **_: object) -> int:
        return log_end_offset

    with mock.patch.object(LeaderRole, "replicated_offset", at_once):
        assert _first_failure()


@pytest.mark.nightly
def test_detects_leader_that_reports_no_divergence() -> None:
    with mock.patch.object(partition_reads, "_divergence", return_value=None):
        assert _first_failure()


@pytest.mark.nightly
def test_detects_leader_that_acknowledges_before_replication() -> None:
    def at_once(partition: Partition, _acks: int) -> int:
        return partition.log.log_end_offset

    with mock.patch.object(Partition, "acknowledged_offset", at_once):
        assert _first_failure()


@pytest.mark.nightly
def test_detects_controller_that_does_not_fence_older_leader_epochs() -> None:
    def of_any_epoch(
        leader: int, requested: Any, isr: Any, partition: PartitionImage, image: ClusterImage
    ) -> ErrorCode | None:
        present = SimpleNamespace(
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leader_recovery_state=requested.leader_recovery_state,
        )
        return _JUDGE(leader, present, isr, partition, image)

    with mock.patch.object(alter_partition, "_judge", of_any_epoch):
        assert _first_failure(30, is_late=True)


@pytest.mark.nightly
def test_detects_controller_that_does_not_check_broker_epochs() -> None:
    def of_any_life(
        leader: int, requested: Any, isr: Any, partition: PartitionImage, image: ClusterImage
    ) -> ErrorCode | None:
        return _JUDGE(
            leader, requested, [(broker_id, -1) for broker_id, _ in isr], partition, image
        )

    with mock.patch.object(alter_partition, "_judge", of_any_life):
        assert _first_failure(90, is_late=True, is_hard_on_outsiders=True)


@pytest.mark.nightly
def test_detects_search_that_reports_a_truncated_log_as_damaged() -> None:
    async def once(
        partition: Partition, timestamp_ms: int, *, up_to_offset: int, clock: Clock
    ) -> TimestampedOffset | None:
        return await offset_search._search(partition.log, timestamp_ms, up_to_offset, clock)

    def always_its_own(_broker: object, _search: object, fault: KafkaError) -> ErrorCode:
        return fault.code

    with (
        mock.patch.object(list_offsets, "search_in_thread", once),
        mock.patch.object(list_offsets, "_code_of", always_its_own),
    ):
        assert first_failure(SearchedWorld, plenty=100, about="CORRUPT_MESSAGE")


@pytest.mark.nightly
def test_detects_search_that_returns_records_before_their_replication() -> None:
    async def unbounded(
        partition: Partition, timestamp_ms: int, *, up_to_offset: int, clock: Clock
    ) -> TimestampedOffset | None:
        del up_to_offset
        end = partition.log.log_end_offset
        return await search_in_thread(partition, timestamp_ms, up_to_offset=end, clock=clock)

    with mock.patch.object(list_offsets, "search_in_thread", unbounded):
        assert first_failure(SearchedWorld, plenty=100, about="_Found")
