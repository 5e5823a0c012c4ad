"""Receive and send by descriptor: results and errors, in C or Python."""

import socket

import pytest

from tests.support.harness.pure_modules import pure
from wirebroker.net.sockets import socket_calls

PURE = pure("socket_calls", package="net.sockets", twin="_calls")
BOTH = pytest.mark.parametrize("calls", [socket_calls, PURE], ids=["used", "pure"])


@pytest.fixture
def pair():
    ours, peer = socket.socketpair()
    with ours, peer:
        for each in (ours, peer):
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        yield ours, peer


def _fill(calls, descriptor):
    while True:
        assert calls.send(descriptor, b"x" * 100_000) > 0


@BOTH
@pytest.mark.parametrize("size", [1, 100, 65_535, 65_536, 65_537, 150_000])
def test_what_is_sent_is_received(calls, pair, size):
    ours, peer = pair
    data = bytes(range(256)) * (size // 256 + 1)
    assert calls.send(ours.fileno(), data[:size]) == size
    room = bytearray(200_000)
    assert calls.receive(peer.fileno(), memoryview(room)) == size
    assert room[:size] == data[:size]
    assert not any(room[size:])


@BOTH
def test_no_more_is_received_than_there_is_room_for(calls, pair):
    ours, peer = pair
    calls.send(ours.fileno(), b"x" * 100_000)
    room = bytearray(80_000)
    assert calls.receive(peer.fileno(), memoryview(room)[10:70_010]) == 70_000
    assert room == bytes(10) + b"x" * 70_000 + bytes(9_990)


@BOTH
def test_nothing_to_receive_and_no_room_to_send_block_nobody(calls, pair):
    ours, peer = pair
    with pytest.raises(BlockingIOError):
        calls.receive(peer.fileno(), memoryview(bytearray(10)))
    with pytest.raises(BlockingIOError):
        _fill(calls, ours.fileno())


@BOTH
def test_the_end_is_no_bytes_and_sending_there_is_refused(calls, pair):
    ours, peer = pair
    peer.close()
    assert calls.receive(ours.fileno(), memoryview(bytearray(10))) == 0
    with pytest.raises(BrokenPipeError):
        calls.send(ours.fileno(), b"x")


@BOTH
def test_a_descriptor_that_is_none_and_memory_that_cannot_be_written_are_refused(calls, pair):
    ours, peer = pair
    ours.send(b"x")
    with pytest.raises((TypeError, BufferError)):
        calls.receive(peer.fileno(), memoryview(b"read-only"))
    descriptor = ours.detach()
    socket.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.receive(descriptor, memoryview(bytearray(10)))
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.send(descriptor, b"x")
