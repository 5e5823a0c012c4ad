"""Thread pools by class of work, none of which waits for another."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.harness.project_files import ROOT
from tests.support.protocol.requests import append, create_topic, delete_topic, fetch
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.unit.wirebroker.api.data.test_list_offsets import look_up, never_at_once
from wirebroker.base.threads import Work, begin_in_thread, coding, in_thread, until_idle
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def blocked(work: Work) -> AsyncIterator[None]:
    go = threading.Event()
    started = [threading.Event() for _ in range(work.most_threads)]

    def hold(event: threading.Event) -> None:
        event.set()
        go.wait()

    futures = [begin_in_thread(work, hold, event) for event in started]
    try:
        for event in started:
            assert await asyncio.to_thread(event.wait, 10)
        yield
    finally:
        go.set()
        await asyncio.gather(*futures)


async def test_full_search_threads_do_not_block_other_requests(tmp_path, monkeypatch):
    never_at_once(monkeypatch)

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        async with contextlib.AsyncExitStack() as stack:
            waiting = [await stack.enter_async_context(client_of(server)) for _ in range(8)]
            async with blocked(Work.SEARCHES):
                searches = [
                    asyncio.create_task(look_up(waiting_client, 0)) for waiting_client in waiting
                ]
                await create_topic(client, "u")
                await append(client, "u", batch(b"b"))
                assert (await fetch(client, "u", 0)).high_watermark == 1
                assert (await client.ask(ApiKey.METADATA, 9, {"topics": None})).topics
                await delete_topic(client, "u")
                assert not any(search.done() for search in searches)
            assert [(await search).offset for search in searches] == [0] * 8


@pytest.mark.parametrize(
    "work", [each for each in Work if each not in (Work.TOPICS, Work.METADATA, Work.SYNCS)]
)
async def test_full_threads_of_another_class_do_not_block_topics(tmp_path, work):
    async with running(tmp_path) as server, client_of(server) as client, blocked(work):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        assert (await fetch(client, "t", 0)).high_watermark == 1
        assert (await look_up(client, TIMESTAMP_MS)).offset == 0
        await delete_topic(client, "t")


async def test_tasks_of_a_work_class_run_in_order_and_take_turns():
    assert Work.LARGE_CODING.most_threads == 1
    order: list[str] = []

    async def pieces(name: str, count: int) -> None:
        for _ in range(count):
            await in_thread(Work.LARGE_CODING, order.append, name)

    await asyncio.gather(pieces("long", 10), pieces("short", 2))
    assert order[:4] == ["long", "short", "long", "short"]


async def test_until_idle_waits_for_calls_that_are_not_awaited():
    done: list[int] = []
    for number in range(5):
        begin_in_thread(Work.UPKEEP, done.append, number)
    await until_idle()
    assert sorted(done) == [0, 1, 2, 3, 4]


async def test_until_idle_tolerates_new_work_of_other_loops(monkeypatch):
    class Another:
        """A future that a loop of another thread waits for."""

        def get_loop(self) -> None:
            running_now[Another()] = Work.UPKEEP

    running_now: dict[Another, Work] = {}
    monkeypatch.setattr("wirebroker.base.threads._running", running_now)
    Another().get_loop()
    await until_idle()
    assert len(running_now) > 1


@pytest.mark.parametrize("work", [work_class for work_class in Work if work_class.may_be_left])
async def test_until_idle_abandons_calls_that_wait_for_another_machine(work, monkeypatch, caplog):
    monkeypatch.setattr("wirebroker.base.threads._ABANDONED_AFTER_S", 0.01)
    caplog.set_level("INFO", "wirebroker")
    go, has_begun = threading.Event(), threading.Event()

    def wait() -> bool:
        has_begun.set()
        return go.wait()

    waiting = [begin_in_thread(work, wait) for _ in range(work.most_threads + 1)]
    try:
        assert await asyncio.to_thread(has_begun.wait, 10)
        await until_idle()
        assert all(future.cancelled() for future in waiting)
        assert caplog.messages.count(
            f"abandoning a {work.thread_name} thread that waits for another machine"
        ) == len(waiting)
    finally:
        go.set()
    assert await in_thread(work, threading.active_count), "later jobs run"


def test_process_exits_while_a_call_waits_for_another_machine():
    """As during a call of the Kerberos library whose realm does not respond."""
    code = (
        "import asyncio, threading; from wirebroker.base.threads import *\n"
        "has_begun, never = threading.Event(), threading.Event()\n"
        "async def main():\n"
        "    begin_in_thread(Work.OUR_LOGINS, lambda: (has_begun.set(), never.wait()))\n"
        "    has_begun.wait()\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=30, check=False)
    assert done.returncode == 0


async def test_stop_does_not_wait_for_a_kerberos_realm(tmp_path, monkeypatch):
    monkeypatch.setattr("wirebroker.base.threads._ABANDONED_AFTER_S", 0.01)
    go = threading.Event()
    try:
        async with running(tmp_path):
            begin_in_thread(Work.OUR_LOGINS, go.wait)
        assert not go.is_set()
    finally:
        go.set()


@pytest.mark.parametrize("work", [Work.UPKEEP, Work.OUR_LOGINS])
async def test_errors_are_raised_to_the_caller(work):
    with pytest.raises(ZeroDivisionError):
        await in_thread(work, divmod, 1, 0)


async def test_failed_call_keeps_no_object_alive():
    class Opened:
        """Such as a socket."""

    references: list[weakref.ref[Opened]] = []

    def fail() -> None:
        opened = Opened()
        references.append(weakref.ref(opened))
        raise OSError("it is unreachable")

    assert Work.LOOKUPS.most_threads == 1
    gc.disable()
    try:
        with contextlib.suppress(OSError):
            await in_thread(Work.LOOKUPS, fail)
        await in_thread(Work.LOOKUPS, gc.isenabled)  # after it, in the same thread
        assert [reference() for reference in references] == [None]
    finally:
        gc.enable()


def test_large_messages_have_separate_coding_threads():
    assert coding(1 << 20) is Work.CODING
    assert coding((1 << 20) + 1) is Work.LARGE_CODING


def test_only_the_threads_module_starts_threads():
    """Every blocking call names its class."""
    calls = {
        (path.relative_to(ROOT).as_posix(), node.attr)
        for path in (ROOT / "wirebroker").glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"run_in_executor", "to_thread"}
    }
    assert calls == {
        ("wirebroker/base/threads.py", "run_in_executor"),
        # Runs on the loop of the user's test, outside of any broker.
        ("wirebroker/testing/base/lifetime.py", "to_thread"),
    }
