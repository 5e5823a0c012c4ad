"""Receive and send by descriptor: results and errors, in C or Python."""

import socket

import pytest

from tests.support.harness.pure_modules import pure
from wirebroker.net.sockets import socket_calls

PURE = pure("socket_calls", package="net.sockets", twin="_calls")
BOTH = pytest.mark.parametrize("calls", [socket_calls, PURE], ids=["used", "pure"])


@pytest.fixture
def pair():
    local, peer = socket.socketpair()
    with local, peer:
        for sock in (local, peer):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        yield local, peer


def _fill(calls, descriptor):
    while True:
        assert calls.send(descriptor, b"x" * 100_000) > 0


@BOTH
@pytest.mark.parametrize("size", [1, 100, 65_535, 65_536, 65_537, 150_000])
def test_sent_bytes_are_received(calls, pair, size):
    local, peer = pair
    data = bytes(range(256)) * (size // 256 + 1)
    assert calls.send(local.fileno(), data[:size]) == size
    room = bytearray(200_000)
    assert calls.receive(peer.fileno(), memoryview(room)) == size
    assert room[:size] == data[:size]
    assert not any(room[size:])


@BOTH
def test_receive_is_limited_by_the_buffer(calls, pair):
    local, peer = pair
    calls.send(local.fileno(), b"x" * 100_000)
    room = bytearray(80_000)
    assert calls.receive(peer.fileno(), memoryview(room)[10:70_010]) == 70_000
    assert room == bytes(10) + b"x" * 70_000 + bytes(9_990)


@BOTH
def test_empty_receive_and_full_send_do_not_block(calls, pair):
    local, peer = pair
    with pytest.raises(BlockingIOError):
        calls.receive(peer.fileno(), memoryview(bytearray(10)))
    with pytest.raises(BlockingIOError):
        _fill(calls, local.fileno())


@BOTH
def test_receive_at_end_returns_zero_and_send_is_refused(calls, pair):
    local, peer = pair
    peer.close()
    assert calls.receive(local.fileno(), memoryview(bytearray(10))) == 0
    with pytest.raises(BrokenPipeError):
        calls.send(local.fileno(), b"x")


@BOTH
def test_closed_descriptor_and_read_only_buffer_are_refused(calls, pair):
    local, peer = pair
    local.send(b"x")
    with pytest.raises((TypeError, BufferError)):
        calls.receive(peer.fileno(), memoryview(b"read-only"))
    descriptor = local.detach()
    socket.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.receive(descriptor, memoryview(bytearray(10)))
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.send(descriptor, b"x")
