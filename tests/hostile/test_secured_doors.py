"""Malicious frames on secured listeners: before and after a login, below TLS and within it.

Each costs at most its own connection and one log line; memory does not grow.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.hostile.hosted_broker import FRAME_DEADLINE_MS, HostedBroker, framed, receive_answer
from tests.hostile.test_hostile_frames import MIB, NOISE_BYTES, REFUSED, header
from tests.support.protocol.raw_client import request_frame
from tests.support.security.sasl_clients import sasl_listener
from tests.support.security.tls_files import client_side, tls_configs
from tests.support.tools.ports import HOST, free_port
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

API_VERSIONS_REQUEST = framed(header(18, 0))
_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


class Doors:
    """A broker with a listener of each protocol."""

    def __init__(self, folder: Path) -> None:
        login = sasl_listener("PLAIN")
        self.ports = {name: free_port() for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}
        listeners = ["PLAINTEXT://127.0.0.1:0"]
        listeners += [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
        overrides = {
            "listeners": ",".join(listeners),
            "security.inter.broker.protocol": "PLAINTEXT",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login[_JAAS],
            "wirebroker.authentication.deadline.ms": str(FRAME_DEADLINE_MS),
        }
        self.broker = HostedBroker(folder, login | tls_configs(folder / "tls") | overrides)
        self._context = client_side(folder)

    def raw(self, listener: str) -> socket.socket:
        sock = socket.create_connection((HOST, self.ports[listener]), timeout=20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def within_tls(self, listener: str = "SSL") -> socket.socket:
        return self._context.wrap_socket(self.raw(listener), server_hostname="localhost")

    def hello(self) -> bytes:
        outgoing = ssl.MemoryBIO()
        engine = self._context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            engine.do_handshake()
        return outgoing.read()

    def name_in_log(self, sock: socket.socket) -> str:
        """Return a connection's name in log lines; its port alone may occur on another listener."""
        host, port = sock.getsockname()[:2]
        listener = {number: name for name, number in self.ports.items()}[sock.getpeername()[1]]
        return f"{host}:{port} on {listener}"

    def log_in(self, sock: socket.socket) -> socket.socket:
        sock.sendall(request_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}))
        assert receive_answer(sock) is not None
        token = {"auth_bytes": b"\0alice\0alice-secret"}
        sock.sendall(request_frame(ApiKey.SASL_AUTHENTICATE, 1, token))
        assert receive_answer(sock) is not None
        return sock


OPEN: dict[str, Callable[[Doors], socket.socket]] = {
    "below TLS": lambda doors: doors.raw("SSL"),
    "below TLS, with a login": lambda doors: doors.raw("SASL_SSL"),
    "within TLS": lambda doors: doors.within_tls(),
    "before a login": lambda doors: doors.raw("SASL_PLAINTEXT"),
    "before a login within TLS": lambda doors: doors.within_tls("SASL_SSL"),
    "after a login": lambda doors: doors.log_in(doors.raw("SASL_PLAINTEXT")),
    "after a login within TLS": lambda doors: doors.log_in(doors.within_tls("SASL_SSL")),
}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    instance = Doors(tmp_path_factory.mktemp("doors"))
    yield instance
    instance.broker.stop()


def is_closed(sock: socket.socket) -> bool:
    try:
        return receive_answer(sock) is None
    except ssl.SSLError:  # an alert, or an end without one
        return True


def is_answered(sock: socket.socket) -> bool:
    sock.sendall(API_VERSIONS_REQUEST)
    return receive_answer(sock) is not None


@pytest.mark.parametrize("door", OPEN)
def test_invalid_frame_costs_its_connection_and_one_log_line(doors: Doors, door: str) -> None:
    broker, bystander = doors.broker, doors.log_in(doors.within_tls("SASL_SSL"))
    with contextlib.closing(bystander):
        before = broker.begin_memory_watch()
        for case, (data, cause) in REFUSED.items():
            with OPEN[door](doors) as sock:
                name = doors.name_in_log(sock)
                with contextlib.suppress(ConnectionError):
                    sock.sendall(data)
                if door.startswith("below TLS") and len(data) < 5:
                    sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock), case
            (line,) = broker.lines_about(name)
            assert "closing" in line, case
            if door.startswith(("after", "within")):
                assert cause in line, case
        assert is_answered(bystander)
        assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_slow_connections_are_closed_at_the_deadline(doors: Doors) -> None:
    with contextlib.ExitStack() as stack:
        socks: dict[str, socket.socket] = {}
        names: list[str] = []
        for door, connect in OPEN.items():
            socks[door] = stack.enter_context(connect(doors))
            names.append(doors.name_in_log(socks[door]))
        for door, sock in socks.items():
            # The start of a TLS hello, and of a frame within TLS.
            partial_frame = struct.pack(">i", 1000) + bytes(9)
            if door.startswith("below TLS"):
                partial_frame = b"\x16\x03"
            with contextlib.suppress(ConnectionError, ssl.SSLError):  # timed out by the broker
                sock.sendall(partial_frame)
        assert [door for door, sock in socks.items() if not is_closed(sock)] == []
    for name in names:
        (line,) = doors.broker.lines_about(name)
        assert "closing" in line


def test_giant_frames_within_tls_stay_within_the_memory_budget(doors: Doors) -> None:
    size = 16 * MIB
    start = header(18, 4)
    frame = struct.pack(">i", size) + start + bytes(size - len(start))
    before = doors.broker.begin_memory_watch()

    def send_giant(_number: int) -> bool:
        with doors.within_tls() as sock:
            sock.settimeout(60)
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                sock.sendall(frame)
            return is_closed(sock)

    # Logged in first: the login timeout is two seconds, and the machine is busy later.
    bystander = doors.log_in(doors.raw("SASL_PLAINTEXT"))
    with contextlib.closing(bystander), ThreadPoolExecutor(4) as pool:
        giants = pool.map(send_giant, range(4))
        for _ in range(5):
            assert is_answered(bystander)
        list(giants)
    # The budget, the one frame that may exceed it, and TLS buffers.
    assert doors.broker.peak_memory_bytes() - before < (32 + 16 + 4) * MIB + NOISE_BYTES


def test_memory_of_abandoned_tls_handshakes_is_freed(doors: Doors) -> None:
    hello = doors.hello()
    doors.log_in(doors.within_tls("SASL_SSL")).close()
    limit = doors.broker.begin_memory_watch() + 2 * NOISE_BYTES
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(doors.raw("SSL")) for _ in range(1_500)]
            for peer in peers:
                peer.sendall(hello)
            for peer in peers:
                with contextlib.suppress(ConnectionError):  # timed out by the broker
                    peer.recv(1)
        doors.broker.until_memory_is(limit)
    assert doors.broker.peak_memory_bytes() > limit, "the handshakes took too little to show this"
