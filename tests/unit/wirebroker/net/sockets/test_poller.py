"""Order of callbacks on pairs of sockets; and the loop that sleeps in a poller."""

import asyncio
import os
import socket
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.wirebroker.net.network_server import Server
from wirebroker.net.loop_watch import LoopWatch, PolledLoop
from wirebroker.net.pages.old_pages import OldPages
from wirebroker.net.send_queue import SendQueue
from wirebroker.net.settings import NetworkSettings
from wirebroker.net.sockets.poller import MOST_EVENTS, Poller
from wirebroker.net.sockets.transport import SocketTransport
from wirebroker.storage.files import Files, FileSlice


class Pairs:
    """A poller, and sockets with one peer each, which are closed at the end."""

    def __init__(self):
        self.reports: list[dict[str, Any]] = []
        self.calls: list[Any] = []
        self.sockets: list[socket.socket] = []
        self.now = 0.0
        self.poller = Poller(report=self.reports.append, monotonic=lambda: self.now)

    def readable(self):
        local, peer = self.pair()
        peer.send(b"x")
        return local

    def pair(self):
        pair = socket.socketpair()
        self.sockets += pair
        for sock in pair:
            sock.setblocking(False)
        return pair

    def note(self, name):
        return lambda: self.calls.append(name)

    def turn(self):
        self.calls.clear()
        assert not self.poller.serve(self.poller.wait(0))
        return list(self.calls)

    def stop(self, sock):
        self.poller.remove_reader(sock.fileno())
        sock.close()


@pytest.fixture
def pairs():
    pairs = Pairs()
    yield pairs
    pairs.poller.close()
    for sock in pairs.sockets:
        sock.close()


class Answer:
    """Data to be sent that notes when it is sent."""

    def __init__(self, pairs, name, error=None):
        self.pairs = pairs
        self.name = name
        self.error = error

    def release(self):
        self.pairs.calls.append(f"{self.name} left")
        if self.error:
            raise self.error


def served(pairs, name, *, lasts_s=0.0, error=None):
    """Set up a readable socket whose slow callback holds its response."""
    local = pairs.readable()

    def callback():
        pairs.calls.append(name)
        pairs.now += lasts_s
        if pairs.poller.is_batch:
            pairs.poller.hold(Answer(pairs, name, error))
        else:
            pairs.calls.append(f"{name} left at once")

    pairs.poller.add_reader(local.fileno(), callback)


def test_responses_of_a_batch_are_sent_together_at_its_end(pairs):
    for name in "abcd":
        served(pairs, name)
    assert pairs.turn() == [*"abcd", *(f"{name} left" for name in "abcd")]
    assert not pairs.poller.is_batch


def test_small_batches_are_not_held(pairs):
    for name in "abc":
        served(pairs, name)
    assert pairs.turn() == [call for name in "abc" for call in (name, f"{name} left at once")]


def test_responses_are_held_at_most_a_millisecond_and_one_request(pairs):
    for name in "abcd":
        served(pairs, name, lasts_s=0.0006)
    assert pairs.turn() == [*"abc", "a left", "b left", "c left", "d", "d left"]


def test_small_responses_with_a_file_slice_are_sent_together_too(pairs, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"records")
    records = FileSlice(Files().data(str(path)), 0, 7)
    peers = []

    def answer(local, peer):
        queue = SendQueue(
            old_pages=OldPages(),
            transport=SocketTransport(pairs.poller, local),
            on_progress=pairs.note("progress"),
            on_error=pairs.reports.append,
        )

        def callback():
            queue.send_soon([b"head ", records, b" tail"])
            pairs.calls.append(arrived(peer))

        return callback

    for _ in range(4):
        local, peer = pairs.pair()
        peers.append(peer)
        peer.send(b"x")
        pairs.poller.add_reader(local.fileno(), answer(local, peer))
    assert pairs.turn() == [b""] * 4
    assert [arrived(peer) for peer in peers] == [b"head records tail"] * 4
    assert not pairs.reports


def arrived(peer):
    try:
        return peer.recv(100)
    except BlockingIOError:
        return b""


def test_failed_send_is_reported_and_others_are_sent(pairs):
    error = RuntimeError("deliberate failure")
    served(pairs, "a", error=error)
    for name in "bcd":
        served(pairs, name)
    assert pairs.turn()[4:] == [f"{name} left" for name in "abcd"]
    assert [report["exception"] for report in pairs.reports] == [error]


def test_readers_and_writers_are_called_as_long_as_they_are_ready(pairs):
    local, peer = pairs.pair()
    fd = local.fileno()
    pairs.poller.add_reader(fd, pairs.note("reader"))
    assert pairs.turn() == []
    peer.send(b"x")
    assert pairs.turn() == ["reader"]
    pairs.poller.add_writer(fd, pairs.note("writer"))
    assert pairs.turn() == ["reader", "writer"]
    local.recv(1)
    assert pairs.turn() == ["writer"]
    pairs.poller.remove_reader(fd)
    peer.send(b"x")
    assert pairs.turn() == ["writer"]
    pairs.poller.add_reader(fd, pairs.note("new reader"))
    pairs.poller.remove_writer(fd)
    assert pairs.turn() == ["new reader"]
    pairs.poller.remove_reader(fd)
    pairs.poller.remove_reader(fd)
    pairs.poller.remove_writer(fd)
    assert pairs.turn() == []
    assert len(pairs.poller) == 0


def test_a_callback_can_be_replaced(pairs):
    local = pairs.readable()
    for name in ("first", "second"):
        pairs.poller.add_reader(local.fileno(), pairs.note(name))
        assert pairs.turn() == [name]
    local.recv(1)
    pairs.poller.remove_reader(local.fileno())
    for name in ("first", "second"):
        pairs.poller.add_writer(local.fileno(), pairs.note(name))
        assert pairs.turn() == [name]


def test_disconnect_is_reported_to_reader_or_writer(pairs):
    reading, peer = pairs.pair()
    pairs.poller.add_reader(reading.fileno(), pairs.note("reader"))
    peer.close()
    assert pairs.turn() == ["reader"]
    pairs.poller.remove_reader(reading.fileno())
    pairs.poller.add_writer(reading.fileno(), pairs.note("writer"))
    assert pairs.turn() == ["writer"]


def test_socket_closed_earlier_in_a_batch_is_not_called(pairs):
    first, second = pairs.readable(), pairs.readable()
    for current, other in ((first, second), (second, first)):

        def close_other(current=current, other=other):
            pairs.calls.append(current)
            pairs.stop(other)

        pairs.poller.add_reader(current.fileno(), close_other)
    assert len(pairs.turn()) == 1
    assert len(pairs.turn()) == 1
    assert pairs.reports == []


def test_reused_descriptor_gets_no_event_of_its_predecessor(pairs):
    sockets = [pairs.readable(), pairs.readable()]
    descriptors = {sock.fileno() for sock in sockets}
    fresh = pairs.readable()

    def replace_other(current, other):
        pairs.calls.append("old")
        fd = other.fileno()
        pairs.stop(other)
        os.dup2(fresh.fileno(), fd)
        pairs.sockets.append(socket.socket(fileno=fd))
        pairs.poller.add_reader(fd, pairs.note("new"))
        pairs.poller.remove_reader(current.fileno())

    first, second = sockets
    pairs.poller.add_reader(first.fileno(), lambda: replace_other(first, second))
    pairs.poller.add_reader(second.fileno(), lambda: replace_other(second, first))
    events = pairs.poller.wait(0)
    assert {fd for fd, _ in events} == descriptors
    pairs.poller.serve(events)
    assert pairs.calls == ["old"]
    assert pairs.turn() == ["new"]


def test_a_writer_that_its_own_reader_removes_is_not_called(pairs):
    local = pairs.readable()

    def close():
        pairs.calls.append("reader")
        pairs.poller.remove_writer(local.fileno())
        pairs.stop(local)

    pairs.poller.add_reader(local.fileno(), close)
    pairs.poller.add_writer(local.fileno(), pairs.note("writer"))
    assert pairs.turn() == ["reader"]
    assert len(pairs.poller) == 0


def test_exception_is_reported_and_does_not_affect_others(pairs):
    def fail():
        raise ValueError("mine alone")

    failing, *others = [pairs.readable() for _ in range(3)]
    pairs.poller.add_reader(failing.fileno(), fail)
    for number, other in enumerate(others):
        pairs.poller.add_reader(other.fileno(), pairs.note(number))
    assert sorted(pairs.turn()) == [0, 1]
    assert [str(report["exception"]) for report in pairs.reports] == ["mine alone"]


def test_events_beyond_a_batch_are_served_in_later_turns(pairs):
    count = 2 * MOST_EVENTS + 5
    for number in range(count):
        pairs.poller.add_reader(pairs.readable().fileno(), pairs.note(number))
    called = []
    for _ in range(3):
        turn = pairs.turn()
        assert len(turn) <= MOST_EVENTS
        called += turn
    # All of them before any has its second turn.
    assert sorted(called[:count]) == list(range(count))


def running_loop() -> PolledLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PolledLoop)
    return loop


async def test_always_ready_socket_does_not_starve_the_loop():
    loop = running_loop()
    local, peer = socket.socketpair()
    calls = 0
    timer = loop.create_future()

    def on_readable():
        nonlocal calls
        calls += 1
        if calls == 5:
            loop.call_soon(order.append, "callback")
        if calls == 10:
            loop.call_later(0.001, timer.set_result, "timer")

    order = []
    with local, peer:
        peer.send(b"x")
        loop.poller.add_reader(local.fileno(), on_readable)
        async with asyncio.timeout(20):
            order.append(await timer)
            order.append(await asyncio.to_thread(lambda: "thread"))
            reader, writer = await asyncio.open_connection(sock=peer)
            local.send(b"y")
            order.append(await reader.readexactly(1))
        loop.poller.remove_reader(local.fileno())
        writer.close()
    assert order == ["callback", "timer", "thread", b"y"]
    assert calls > 10


async def test_loop_reports_a_callback_error_and_continues():
    loop = running_loop()
    local, peer = socket.socketpair()
    reported = loop.create_future()
    loop.set_exception_handler(lambda _, context: reported.set_result(context["exception"]))

    def fail():
        loop.poller.remove_reader(local.fileno())
        raise ValueError("mine")

    with local, peer:
        peer.send(b"x")
        loop.poller.add_reader(local.fileno(), fail)
        assert str(await reported) == "mine"


def test_a_socket_may_stop_the_loop():
    loop = LoopWatch().new_event_loop()
    assert isinstance(loop, PolledLoop)
    local, peer = socket.socketpair()
    with local, peer:
        peer.send(b"x")
        loop.poller.add_reader(local.fileno(), loop.stop)
        loop.run_forever()
        loop.poller.remove_reader(local.fileno())
    loop.close()
    assert loop.is_closed()


def test_time_spent_on_sockets_shortens_the_timer_wait(monkeypatch):
    now = 100.0
    waits: list[float | None] = []

    class SlowSockets:
        def wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
            waits.append(timeout_s)
            return [(1, 1)]

        def serve(self, _events: object) -> bool:
            nonlocal now
            now += 4
            return False

        def close(self) -> None:
            pass

    loop: Any = LoopWatch().new_event_loop()
    loop.poller.close()
    loop.poller = SlowSockets()
    monkeypatch.setattr("wirebroker.net.loop_watch.time", SimpleNamespace(perf_counter=lambda: now))
    assert loop._selector.select(6) == []
    assert waits == [6, 2]
    loop.close()


def test_on_a_loop_without_a_poller_the_loop_watches_sockets():
    async def main():
        server = Server(NetworkSettings())
        assert server.table.sockets is asyncio.get_running_loop()
        try:
            async with asyncio.timeout(20):
                assert await (await server.client()).ask(3, b"served") == b"served"
        finally:
            await server.close()

    asyncio.run(main())


def test_end_after_unread_data_is_reported_once(pairs):
    local, peer = pairs.pair()
    peer.send(b"unread")
    pairs.poller.add_ender(local.fileno(), pairs.note("end"))
    assert pairs.turn() == []
    peer.shutdown(socket.SHUT_WR)
    assert pairs.turn() == ["end"]
    assert pairs.turn() == []
    assert len(pairs.poller) == 0
    assert local.recv(10) == b"unread"


def test_reader_writer_and_ender_are_added_and_removed_separately(pairs):
    local, peer = pairs.pair()
    descriptor = local.fileno()
    pairs.poller.add_ender(descriptor, pairs.note("end"))
    pairs.poller.add_writer(descriptor, pairs.note("write"))
    pairs.poller.add_reader(descriptor, pairs.note("read"))
    assert pairs.turn() == ["write"]
    pairs.poller.remove_writer(descriptor)
    peer.send(b"x")
    assert pairs.turn() == ["read"]
    peer.close()
    assert pairs.turn() == ["read", "end"]
    assert pairs.turn() == ["read"]
    pairs.poller.add_ender(descriptor, pairs.note("end"))
    pairs.poller.remove_reader(descriptor)
    pairs.poller.remove_ender(descriptor)
    pairs.poller.remove_ender(descriptor)
    assert pairs.turn() == []
    assert len(pairs.poller) == 0


def test_poller_reports_whether_another_socket_is_ready(pairs):
    first, second = pairs.readable(), pairs.pair()[0]
    for sock in (first, second):
        pairs.poller.add_reader(sock.fileno(), pairs.note("read"))
    assert not pairs.poller.is_another_ready(first.fileno())
    assert pairs.poller.is_another_ready(second.fileno())
    assert pairs.turn() == ["read"]  # the query consumed nothing


def test_few_writable_sockets_do_not_count_as_ready(pairs):
    few = [pairs.pair()[0].fileno() for _ in range(4)]
    for descriptor in few:
        pairs.poller.add_writer(descriptor, partial(pairs.poller.is_another_ready, descriptor))
    assert not pairs.poller.is_another_ready(few[0])
    pairs.poller.serve(pairs.poller.wait(0))
    assert not pairs.poller.is_another_ready(-1)
    reader = pairs.readable().fileno()
    pairs.poller.add_reader(reader, pairs.note("read"))
    assert pairs.poller.is_another_ready(few[0])


def test_many_writable_sockets_count_as_ready(pairs):
    descriptors = [pairs.pair()[0].fileno() for _ in range(6)]
    for descriptor in descriptors:
        pairs.poller.add_writer(descriptor, pairs.note("write"))
    assert pairs.poller.is_another_ready(descriptors[0])


def test_checking_for_ready_sockets_consumes_no_events(pairs):
    served = Counter[int]()

    def serve(descriptor: int) -> None:
        served[descriptor] += 1
        pairs.poller.is_another_ready(descriptor)

    for _ in range(3 * MOST_EVENTS):
        descriptor = pairs.readable().fileno()
        pairs.poller.add_reader(descriptor, partial(serve, descriptor))
    for _ in range(3):
        pairs.poller.serve(pairs.poller.wait(0))
        pairs.poller.is_another_ready(-1)  # from a callback of the loop
    assert len(served) == 3 * MOST_EVENTS
