"""The simulation's own disk, loop and processes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from random import Random
from typing import Any

import pytest

from tests.simulation.machine import disk as disk_module
from tests.simulation.machine.disk import Create, Disk
from tests.simulation.machine.loop import DeadlockError, Process, SimulatedClock, SimulatedLoop
from tests.simulation.machine.simulated_files import SimulatedFiles
from wirebroker.base.clock import pause
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.storage.log_directory import LogDirectory


class Machine:
    def __init__(self) -> None:
        self.loop = SimulatedLoop(Random(1))
        self.disk = Disk()
        self.process = Process(self.loop, "p")
        self.files = SimulatedFiles(self.disk, SimulatedClock(self.loop), self.process.kill)
        self.files.make_directory("/d")
        self.files.sync_directory("/")

    def run(self, coroutine: Any) -> Any:
        try:
            return self.loop.run_until_complete(coroutine)
        finally:
            self.loop.close()


@pytest.fixture
def machine():
    instance = Machine()
    yield instance
    instance.loop.close()


def test_power_loss_forgets_unsynced_data(machine) -> None:
    file = machine.files.data("/d/a")
    file.write_at(0, b"kept")
    file.sync()
    machine.files.sync_directory("/d")
    file.write_at(4, b" gone")
    machine.files.data("/d/nameless").write_at(0, b"x")
    assert file.size() == 9
    machine.disk.lose_power()
    assert machine.files.read_file("/d/a") == b"kept"
    assert machine.files.list_directory("/d") == ["a"]


def test_replaced_file_survives_a_power_loss_if_synced(machine) -> None:
    machine.files.write_file("/d/a", b"old")
    machine.files.write_file("/d/a", b"new", sync=False)
    assert machine.files.read_file("/d/a") == b"new"
    machine.disk.lose_power()
    assert machine.files.read_file("/d/a") == b"old"


def test_a_kill_in_a_write_tears_it_and_ends_the_process(machine) -> None:
    file = machine.files.data("/d/a")
    file.write_at(0, b"1234")
    machine.files.dies_at_write = machine.files.writes + 1

    async def write() -> None:
        try:
            file.write_at(4, b"5678")
        finally:
            machine.files.is_dead = True
            file.write_at(0, b"never")

    async def main() -> None:
        machine.process.spawn(write())
        await pause(1)

    machine.loop.set_exception_handler(lambda *_: None)
    machine.run(main())
    assert not machine.process.is_alive
    assert machine.files.read_file("/d/a") == b"123456"


def test_a_directory_is_renamed_with_what_is_in_it(machine) -> None:
    machine.files.data("/d/a").write_at(0, b"x")
    machine.files.rename("/d", "/e")
    assert machine.files.read_file("/e/a") == b"x"
    assert not machine.files.exists("/d")
    machine.files.remove_tree("/e")
    assert not machine.files.exists("/e/a")


def test_clock_jumps_over_pauses_and_a_deadlock_is_an_error(machine) -> None:
    machine.loop.run_until_complete(pause(3_600))
    assert machine.loop.time() == pytest.approx(3_600)
    with pytest.raises(DeadlockError):
        machine.loop.run_until_complete(machine.loop.create_future())


def test_stopped_process_continues_its_steps_later_in_order(machine) -> None:
    steps: list[tuple[int, float]] = []

    async def work() -> None:
        for number in range(3):
            await pause(1)
            steps.append((number, machine.loop.time()))

    async def main() -> None:
        task = machine.process.spawn(work())
        await pause(1.5)
        machine.process.stop()
        await pause(10)
        machine.process.go_on()
        await task

    machine.run(main())
    assert [number for number, _ in steps] == [0, 1, 2]
    assert steps[1][1] == pytest.approx(11.5)
    assert steps[2][1] == pytest.approx(12.5)


def test_killed_process_runs_no_further_step(machine) -> None:
    ran: list[str] = []
    machine.process.on_death = lambda: ran.append("death")

    async def work() -> None:
        try:
            await asyncio.to_thread(lambda: ran.append("job"))
            await pause(5)
            ran.append("end")
        finally:
            await pause(0)
            ran.append("after a pause that never ends")

    async def main() -> None:
        machine.process.spawn(work())
        await pause(3)
        machine.process.kill()
        await pause(10)

    machine.run(main())
    assert ran == ["job", "death"]


def test_read_cached_returns_all_data_or_none(machine) -> None:
    file = machine.files.data("/d/a")
    file.write_at(0, b"0123456789")
    reads = []
    for _ in range(40):
        memory = bytearray(8)
        reads.append(bytes(memory[: file.read_cached(4, memoryview(memory))]))
    assert set(reads) == {b"456789", b""}
    assert {file.is_resident(0) for _ in range(40)} == {True, False}


class _MeetingLog:
    """The log of a partition; it waits a while for another that is being closed too."""

    topic = "t"
    is_retired = False
    recovery_point = high_watermark = log_start_offset = 0

    def __init__(self, index: int, barrier: threading.Barrier, closed: list[int]) -> None:
        self.index = index
        self.log = self
        self._barrier = barrier
        self._closed = closed

    def close(self, *, clean: bool, sync: bool) -> None:
        del clean, sync
        with contextlib.suppress(threading.BrokenBarrierError):  # it is alone
            self._barrier.wait(0.1)
        self._closed.append(self.index)


def test_logs_of_a_simulated_disk_are_closed_in_order_one_at_a_time(machine) -> None:
    closed: list[int] = []
    barrier = threading.Barrier(2)
    directory = DataDirectory(LogDirectory.open("/d", machine.files, node_id=1))
    for index in reversed(range(10)):
        partition: Any = _MeetingLog(index, barrier, closed)
        directory.partitions.add(partition)
    directory.close(broker_epoch=1)
    assert barrier.broken, "two logs were closed at once"
    assert closed == list(range(10))


def test_two_changes_of_a_disk_at_once_are_an_error(machine, monkeypatch) -> None:
    inner = disk_module.change_names
    errors: list[str] = []

    def change_names(*args: Any) -> None:
        inner(*args)
        create = Create(machine.disk.directory("/d").number, "b", False)
        try:
            machine.disk.apply(create)
        except AssertionError as error:
            errors.append(str(error))

    monkeypatch.setattr(disk_module, "change_names", change_names)
    machine.files.data("/d/a").create()
    assert errors == ["two threads change the disk at once"]
    assert machine.files.list_directory("/d") == ["a"]
