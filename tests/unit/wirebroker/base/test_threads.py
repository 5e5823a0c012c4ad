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
    begun = [threading.Event() for _ in range(work.most_threads)]

    def hold(mine: threading.Event) -> None:
        mine.set()
        go.wait()

    held = [begin_in_thread(work, hold, each) for each in begun]
    try:
        for each in begun:
            assert await asyncio.to_thread(each.wait, 10)
        yield
    finally:
        go.set()
        await asyncio.gather(*held)


async def test_while_searches_are_full_all_else_goes_on(tmp_path, monkeypatch):
    never_at_once(monkeypatch)

    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        async with contextlib.AsyncExitStack() as stack:
            waiting = [await stack.enter_async_context(client_of(server)) for _ in range(8)]
            async with blocked(Work.SEARCHES):
                searches = [asyncio.create_task(look_up(each, 0)) for each in waiting]
                await create_topic(client, "u")
                await append(client, "u", batch(b"b"))
                assert (await fetch(client, "u", 0)).high_watermark == 1
                assert (await client.ask(ApiKey.METADATA, 9, {"topics": None})).topics
                await delete_topic(client, "u")
                assert not any(search.done() for search in searches)
            assert [(await each).offset for each in searches] == [0] * 8


@pytest.mark.parametrize(
    "work", [each for each in Work if each not in (Work.TOPICS, Work.METADATA, Work.SYNCS)]
)
async def test_topics_are_made_and_served_while_another_class_is_full(tmp_path, work):
    async with running(tmp_path) as server, client_of(server) as client, blocked(work):
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
        assert (await fetch(client, "t", 0)).high_watermark == 1
        assert (await look_up(client, TIMESTAMP_MS)).offset == 0
        await delete_topic(client, "t")


async def test_a_class_takes_work_in_order_and_its_pieces_have_turns():
    assert Work.LARGE_CODING.most_threads == 1
    order: list[str] = []

    async def pieces(name: str, count: int) -> None:
        for _ in range(count):
            await in_thread(Work.LARGE_CODING, order.append, name)

    await asyncio.gather(pieces("long", 10), pieces("short", 2))
    assert order[:4] == ["long", "short", "long", "short"]


async def test_until_idle_waits_for_what_nobody_awaits():
    done: list[int] = []
    for number in range(5):
        begin_in_thread(Work.UPKEEP, done.append, number)
    await until_idle()
    assert sorted(done) == [0, 1, 2, 3, 4]


async def test_until_idle_bears_work_of_other_loops_that_begins_meanwhile(monkeypatch):
    class Another:
        """A future that a loop of another thread waits for."""

        def get_loop(self) -> None:
            running_now[Another()] = Work.UPKEEP

    running_now: dict[Another, Work] = {}
    monkeypatch.setattr("wirebroker.base.threads._running", running_now)
    Another().get_loop()
    await until_idle()
    assert len(running_now) > 1


@pytest.mark.parametrize("work", [each for each in Work if each.may_be_left])
async def test_until_idle_leaves_who_waits_for_another_machine(work, monkeypatch, caplog):
    monkeypatch.setattr("wirebroker.base.threads._LEFT_AFTER_S", 0.01)
    caplog.set_level("INFO", "wirebroker")
    go, has_begun = threading.Event(), threading.Event()

    def wait() -> bool:
        has_begun.set()
        return go.wait()

    waiting = [begin_in_thread(work, wait) for _ in range(work.most_threads + 1)]
    try:
        assert await asyncio.to_thread(has_begun.wait, 10)
        await until_idle()
        assert all(each.cancelled() for each in waiting)
        assert caplog.messages.count(
            f"a thread of {work.thread_name} waits for another machine; it is left"
        ) == len(waiting)
    finally:
        go.set()
    assert await in_thread(work, threading.active_count), "whoever comes later is worked for"


def test_a_process_ends_whatever_another_machine_does():
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


async def test_a_stop_waits_for_no_realm(tmp_path, monkeypatch):
    monkeypatch.setattr("wirebroker.base.threads._LEFT_AFTER_S", 0.01)
    go = threading.Event()
    try:
        async with running(tmp_path):
            begin_in_thread(Work.OUR_LOGINS, go.wait)
        assert not go.is_set()
    finally:
        go.set()


@pytest.mark.parametrize("work", [Work.UPKEEP, Work.OUR_LOGINS])
async def test_errors_are_the_callers(work):
    with pytest.raises(ZeroDivisionError):
        await in_thread(work, divmod, 1, 0)


async def test_a_call_that_fails_keeps_nothing_open():
    class Opened:
        """Such as a socket."""

    kept: list[weakref.ref[Opened]] = []

    def fail() -> None:
        opened = Opened()
        kept.append(weakref.ref(opened))
        raise OSError("it is unreachable")

    assert Work.LOOKUPS.most_threads == 1
    gc.disable()
    try:
        with contextlib.suppress(OSError):
            await in_thread(Work.LOOKUPS, fail)
        await in_thread(Work.LOOKUPS, gc.isenabled)  # after it, in the same thread
        assert [each() for each in kept] == [None]
    finally:
        gc.enable()


def test_large_messages_have_threads_of_their_own():
    assert coding(1 << 20) is Work.CODING
    assert coding((1 << 20) + 1) is Work.LARGE_CODING


def test_nobody_else_makes_threads():
    """Every blocking call names its class."""
    found = {
        (path.relative_to(ROOT).as_posix(), node.attr)
        for path in (ROOT / "wirebroker").glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"run_in_executor", "to_thread"}
    }
    assert found == {
        ("wirebroker/base/threads.py", "run_in_executor"),
        # Runs on the loop of the user's test, outside of any broker.
        ("wirebroker/testing/base/lifetime.py", "to_thread"),
    }
