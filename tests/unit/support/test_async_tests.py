"""Messages about faulty async tests."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.harness.async_tests import on_a_loop
from wirebroker.net.loop_watch import PolledLoop


async def test_a_test_runs_on_the_loop_that_the_broker_has(tmp_path, request):
    assert isinstance(asyncio.get_running_loop(), PolledLoop)
    assert tmp_path.is_dir()
    assert request.node.name == "test_a_test_runs_on_the_loop_that_the_broker_has"


def test_a_client_runs_on_asyncio_s_own_loop():
    async def client() -> str:
        return type(asyncio.get_running_loop()).__name__

    assert on_a_loop(client(), is_brokers=False) == "_UnixSelectorEventLoop"


def test_what_a_test_raises_comes_out():
    async def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        on_a_loop(fails())


def test_a_test_that_waits_too_long_is_told_with_all_that_waits():
    async def helper() -> None:
        await asyncio.get_running_loop().create_future()

    async def waits() -> None:
        task = asyncio.create_task(helper())
        await asyncio.wait((task,))

    with pytest.raises(pytest.fail.Exception, match=r"still waits after 0\.01 s") as raised:
        on_a_loop(waits(), patience_s=0.01)
    assert "in helper" in str(raised.value)
    assert "in waits" in str(raised.value)


def test_a_task_that_is_left_behind_is_named():
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


def test_a_task_that_ends_a_moment_later_is_not_left_behind():
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
