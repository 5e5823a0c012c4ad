"""Holds of the loop: their measurement, and that a 90 MiB frame causes none."""

import asyncio
import mmap
import socket
import struct
import threading
import time
from types import SimpleNamespace

import pytest

from tests.support.harness.turn_work import TurnPages
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.base.metrics import HOLD_BOUNDS_MS, Metrics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listeners.listener import Listener, bind
from wirebroker.net.loop_watch import LoopWatch
from wirebroker.net.settings import NetworkSettings
from wirebroker.net.sockets.poller import Poller
from wirebroker.request.handlers import Registry


def test_blocking_callback_is_measured_and_waiting_is_not(monkeypatch):
    clock = SimpleNamespace(wall_s=0.0, cpu_s=0.0)
    readings = SimpleNamespace(
        perf_counter=lambda: clock.wall_s,
        thread_time=lambda: clock.cpu_s,
        monotonic=time.monotonic,
    )
    monkeypatch.setattr("wirebroker.net.loop_watch.time", readings)
    wait = Poller.wait

    def wait_long(poller, timeout):
        events = wait(poller, timeout)
        clock.wall_s += 1000
        return events

    monkeypatch.setattr(Poller, "wait", wait_long)
    metrics = Metrics()
    watch = LoopWatch(metrics, with_cpu_time=True)

    async def hold() -> None:
        await asyncio.to_thread(int)
        await next_turn()
        assert clock.wall_s > 1000
        assert watch.holds_ms.largest == 0
        clock.wall_s += 0.05
        clock.cpu_s += 0.03
        await next_turn()

    with asyncio.Runner(loop_factory=watch.new_event_loop) as runner:
        runner.run(hold())
    assert watch.holds_ms.largest == pytest.approx(50)
    assert watch.cpu_holds_ms.largest == pytest.approx(30)
    assert watch.holds_ms.count_over(20.0) == 1
    assert watch.holds_ms is metrics.loop_hold_ms
    assert watch.holds_ms.bounds == HOLD_BOUNDS_MS


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_frame_of_90_mib_is_received_in_short_turns(is_kept):
    size = 90 << 20
    registry = Registry()
    sizes = []

    @registry.handles_raw(ApiKey.METADATA)
    def metadata(broker, request):
        if is_kept:
            request.keep()
        sizes.append(len(request.frame))
        return [b"ok"]

    async def run() -> None:
        settings = NetworkSettings()
        loop = asyncio.get_running_loop()
        table = ConnectionTable(
            loop=loop,
            dispatch=Dispatcher(None, registry),
            clock=SystemClock(),
            settings=settings,
        )
        listener = Listener(table, "PLAINTEXT", bind("127.0.0.1", 0, settings))
        listener.start()
        answer = await asyncio.to_thread(send, listener.port)
        listener.close()
        await table.close(grace_s=1)
        assert answer == struct.pack(">ii", 6, 7) + b"ok"

    def send(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(struct.pack(">ihhih", size, ApiKey.METADATA, 1, 7, -1))
            remaining = size - 10
            piece = memoryview(bytes(1 << 20))
            while remaining:
                remaining -= sock.send(piece[: min(remaining, 1 << 20)])
            return sock.recv(100)

    threads_before = threading.active_count()  # from earlier tests in this process
    watch = LoopWatch()
    pages = TurnPages(watch)
    with asyncio.Runner(loop_factory=watch.new_event_loop) as runner:
        runner.run(run())
    assert sizes == [size]
    assert threading.active_count() < threads_before + 50
    # A turn receives at most one MiB, and never copies the frame.
    assert 0 < pages.largest < 2 * (1 << 20) // mmap.PAGESIZE
