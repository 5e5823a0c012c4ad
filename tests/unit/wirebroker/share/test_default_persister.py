"""The persister without a cluster: attempts, the topic's creation, disabled share groups."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.kit import image_of, topic
from tests.support.records.clocks import HandClock
from wirebroker.base.clock import next_turn
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_change import change_between
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    StateBatch,
    StateError,
    StateSummary,
    StateWrite,
)
from wirebroker.share import default_persister
from wirebroker.share.default_persister import DefaultPersister
from wirebroker.share.state_rpcs import WRITE
from wirebroker.share.stored_states import perform

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION = (b"t" * 16, 0)
HERE, THERE = 1, 2
LED_HERE = image_of(*topic(SHARE_GROUP_STATE, 1))
LED_THERE = image_of(*topic(SHARE_GROUP_STATE, 1, leader=THERE, replicas=[THERE], isr=[THERE]))


class ScriptedCoordinator:
    """A share coordinator whose responses are a list, then success."""

    def __init__(self, *errors: ErrorCode) -> None:
        self.errors = list(errors)
        self.requests = 0
        self.creations = 0
        self.is_enabled = True

    def submit(self, target: str, *arguments: Any, on_error: Any) -> Mapping[str, Any]:
        del target, arguments
        self.requests += 1
        return on_error(self.errors.pop(0)) if self.errors else {"result": None}

    def create_topic(self) -> None:
        self.creations += 1


class ScriptedRemote:
    """Other nodes' coordinators, which fail with the errors of a list, then succeed."""

    def __init__(self, *errors: ErrorCode) -> None:
        self.errors = list(errors)
        self.nodes: list[int] = []
        self.is_stopped = False

    def request(
        self, node_id: int, rpc: Any, group_id: str, partitions: Mapping[Any, Any]
    ) -> asyncio.Future[Any]:
        del rpc, group_id
        self.nodes.append(node_id)
        future = asyncio.get_running_loop().create_future()
        error = state_error(self.errors.pop(0)) if self.errors else None
        future.set_result(dict.fromkeys(partitions, error))
        return future

    async def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_persister, "_FIRST_DELAY_S", 0.0001)


def persister_of(
    coordinator: ScriptedCoordinator | None = None,
    remote: ScriptedRemote | None = None,
    image: ClusterImage = LED_HERE,
) -> DefaultPersister:
    here: Any = coordinator or ScriptedCoordinator()
    there: Any = remote or ScriptedRemote()
    clock: Any = HandClock()
    return DefaultPersister(HERE, here, there, image=image, clock=clock, random=random.Random(1))


RETRIABLE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


@pytest.mark.usefixtures("_quick")
async def test_retriable_errors_are_retried() -> None:
    coordinator = ScriptedCoordinator(*RETRIABLE)
    assert await persister_of(coordinator).delete("g", [PARTITION]) == {PARTITION: None}
    assert coordinator.requests == 5


@pytest.mark.usefixtures("_quick")
async def test_fifth_failure_is_the_last() -> None:
    coordinator = ScriptedCoordinator(*[ErrorCode.NOT_COORDINATOR] * 9)
    results = await persister_of(coordinator).delete("g", [PARTITION])
    message = (
        "Error in delete state RPC. "
        "Exhausted max retries to complete delete state RPC without success."
    )
    assert results == {PARTITION: StateError(ErrorCode.NOT_COORDINATOR, message)}
    assert coordinator.requests == 5


@pytest.mark.usefixtures("_quick")
async def test_lost_connection_is_retried() -> None:
    remote = ScriptedRemote(ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
    persister = persister_of(remote=remote, image=LED_THERE)
    assert await persister.delete("g", [PARTITION]) == {PARTITION: None}
    assert remote.nodes == [THERE] * 3


async def test_other_errors_are_final() -> None:
    coordinator = ScriptedCoordinator(ErrorCode.UNKNOWN_SERVER_ERROR)
    results = await persister_of(coordinator).delete("g", [PARTITION])
    message = (
        "Error in delete state RPC. Unable to delete share group state: "
        "The server experienced an unexpected error when processing the request."
    )
    assert results == {PARTITION: StateError(ErrorCode.UNKNOWN_SERVER_ERROR, message)}


async def test_absent_topic_is_created_and_then_used_without_a_delay() -> None:
    coordinator = ScriptedCoordinator()
    persister = persister_of(coordinator, image=ClusterImage())
    deletion = asyncio.ensure_future(persister.delete("g", [PARTITION]))
    while not coordinator.creations:
        await next_turn()
    assert coordinator.requests == 0
    await persister.apply(change_between(ClusterImage(), LED_HERE), LED_HERE)
    assert await deletion == {PARTITION: None}
    assert coordinator.requests == coordinator.creations == 1


async def test_moved_coordinator_is_used_without_a_delay() -> None:
    coordinator = ScriptedCoordinator(ErrorCode.NOT_COORDINATOR)
    remote = ScriptedRemote()
    persister = persister_of(coordinator, remote)
    deletion = asyncio.ensure_future(persister.delete("g", [PARTITION]))
    while not coordinator.requests:
        await next_turn()
    await persister.apply(change_between(LED_HERE, LED_THERE), LED_THERE)
    assert await deletion == {PARTITION: None}
    assert remote.nodes == [THERE]


async def test_stop_ends_all_waits() -> None:
    remote = ScriptedRemote()
    coordinator = ScriptedCoordinator(*[ErrorCode.NOT_COORDINATOR] * 9)
    persister = persister_of(coordinator, remote)
    deletion = asyncio.ensure_future(persister.delete("g", [PARTITION]))
    while not coordinator.requests:
        await next_turn()
    await persister.stop()
    (error,) = (await deletion).values()
    assert isinstance(error, StateError)
    assert error.code is ErrorCode.NOT_COORDINATOR
    assert remote.is_stopped


async def test_no_partitions() -> None:
    assert await persister_of().read("g", {}) == {}


async def test_disabled_share_groups_store_nothing() -> None:
    coordinator = ScriptedCoordinator()
    coordinator.is_enabled = False
    persister = persister_of(coordinator)
    assert await persister.initialize("g", {PARTITION: (1, 2)}) == {PARTITION: None}
    written = StateWrite(1, 1, 1, 1, ())
    assert await persister.write("g", {PARTITION: written}) == {PARTITION: None}
    assert await persister.delete("g", [PARTITION]) == {PARTITION: None}
    assert await persister.read("g", {PARTITION: 1}) == {PARTITION: PersistedState(0, -1, -1, ())}
    assert await persister.read_summary("g", {PARTITION: 1}) == {
        PARTITION: StateSummary(0, 0, -1, -1)
    }
    assert coordinator.requests == 0


def long_write(count: int) -> StateWrite:
    batches = tuple(StateBatch(offset, offset, offset % 2 * 2, 1) for offset in range(count))
    return StateWrite(1, 2, 3, 4, batches)


@pytest.mark.parametrize("image", [LED_HERE, LED_THERE], ids=["here", "there"])
async def test_long_write_is_stored_in_parts(image: ClusterImage) -> None:
    coordinator, remote = ScriptedCoordinator(), ScriptedRemote()
    persister = persister_of(coordinator, remote, image)
    assert await persister.write("g", {PARTITION: long_write(25_000)}) == {PARTITION: None}
    assert coordinator.requests + len(remote.nodes) == 25


async def test_long_write_ends_with_its_first_failure() -> None:
    coordinator = ScriptedCoordinator(ErrorCode.FENCED_STATE_EPOCH)
    (error,) = (await persister_of(coordinator).write("g", {PARTITION: long_write(2_500)})).values()
    assert error is not None
    assert error.code is ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.requests == 1


async def test_long_write_of_a_request_runs_in_parts() -> None:
    coordinator: Any = ScriptedCoordinator()
    write = {PARTITION: long_write(9_500)}
    results = await perform(coordinator, WRITE, "g", write.items(), HandClock())
    assert results == {PARTITION: None}
    assert coordinator.requests == 10
