"""Messages about faulty async tests."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.harness.async_tests import on_a_loop
from wirebroker.net.loop_watch import PolledLoop


async def test_runs_on_the_broker_event_loop(tmp_path, request):
    assert isinstance(asyncio.get_running_loop(), PolledLoop)
    assert tmp_path.is_dir()
    assert request.node.name == "test_runs_on_the_broker_event_loop"


def test_a_client_runs_on_asyncio_s_own_loop():
    async def client() -> str:
        return type(asyncio.get_running_loop()).__name__

    assert on_a_loop(client(), is_brokers=False) == "_UnixSelectorEventLoop"


def test_exception_of_a_test_is_reported():
    async def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        on_a_loop(fails())


def test_timeout_lists_all_waiting_tasks():
    async def helper() -> None:
        await asyncio.get_running_loop().create_future()

    async def waits() -> None:
        task = asyncio.create_task(helper())
        await asyncio.wait((task,))

    with pytest.raises(pytest.fail.Exception, match=r"still waits after 0\.01 s") as raised:
        on_a_loop(waits(), patience_s=0.01)
    assert "in helper" in str(raised.value)
    assert "in waits" in str(raised.value)


def test_leaked_task_is_named():
    tasks = []

    async def forgotten() -> None:
        await asyncio.get_running_loop().create_future()

    async def leaves() -> None:
        tasks.append(asyncio.create_task(forgotten()))

    with pytest.raises(pytest.fail.Exception, match="left behind") as raised:
        on_a_loop(leaves())
    assert "in forgotten" in str(raised.value)
    assert tasks[0].cancelled()


async def _wait_behind(began: asyncio.Event) -> None:
    began.set()
    await asyncio.wait_for(asyncio.Event().wait(), 60)


def test_task_that_ends_shortly_after_is_not_a_leak():
    tasks = []

    async def leaves() -> None:
        began = asyncio.Event()
        tasks.append(asyncio.create_task(_wait_behind(began)))
        await began.wait()
        tasks[0].cancel()

    on_a_loop(leaves())
    assert tasks[0].cancelled()


def test_a_test_that_is_cancelled_fails():
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    with pytest.raises(pytest.fail.Exception, match="was cancelled"):
        on_a_loop(cancels())
