"""Ended connections leave nothing to the cycle collector (gc_tuning.py)."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.protocol.raw_client import BlockingClient, request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.support.security.sasl_clients import sasl_listener
from tests.support.security.tls_files import client_side, tls_configs
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import next_turn
from wirebroker.base.gc_tuning import collect_frozen
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wirebroker.net.connection_table import ConnectionTable

COUNT = 12
DEADLINE_MS = 2_000
SECURED = ("SSL", "SASL_SSL")
LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT", *SECURED)
TOPIC = "t"


class Doors:
    """A broker with a listener of each protocol, and the messages that clients send it."""

    def __init__(self, folder: Path) -> None:
        self.ports = {name: free_port() for name in LISTENERS}
        login = sasl_listener("PLAIN", "SCRAM-SHA-256")
        jaas = {name: value for name, value in login.items() if name.endswith("jaas.config")}
        settings = {
            **ONE_NODE,
            "group.initial.rebalance.delay.ms": "600000",
            **tls_configs(folder / "tls"),
            **login,
            **{name.replace("plaintext", "ssl", 1): value for name, value in jaas.items()},
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "security.inter.broker.protocol": "PLAINTEXT",
            "wirebroker.authentication.deadline.ms": str(DEADLINE_MS),
            "wirebroker.frame.deadline.ms": str(DEADLINE_MS),
            "connections.max.idle.ms": str(DEADLINE_MS),
            "connection.failed.authentication.delay.ms": "1",
        }
        self.server = ThreadedServer(config_of(folder / "data", settings=settings))
        self._context = client_side(folder)

    def furnish(self) -> None:
        client = BlockingClient((HOST, self.ports["PLAINTEXT"]))
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000})
        group = {"key": "g", "key_type": 0}
        eventually(lambda: not client.ask(ApiKey.FIND_COORDINATOR, 3, group).error_code)
        # A quota that is never exceeded, so that requests are charged.
        entity = [{"entity_type": "user", "entity_name": None}]
        op = {"key": "request_percentage", "value": 1e6, "remove": False}
        entries = [{"entity": entity, "ops": [op]}]
        quotas = {"entries": entries, "validate_only": False}
        assert not client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, quotas).entries[0].error_code
        client.close()

    def connect(self, listener: str) -> socket.socket:
        return socket.create_connection((HOST, self.ports[listener]), timeout=20)

    def within(self, listener: str) -> socket.socket:
        sock = self.connect(listener)
        if listener not in SECURED:
            return sock
        return self._context.wrap_socket(sock, server_hostname="localhost")

    def known(self, listener: str) -> socket.socket:
        sock = self.within(listener)
        if listener.startswith("SASL"):
            sock.sendall(HANDSHAKE)
            assert sock.recv(1000)
            sock.sendall(login_frame("alice-secret"))
            assert sock.recv(1000)
        return sock

    def hello(self) -> bytes:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        engine = self._context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            engine.do_handshake()
        except ssl.SSLWantReadError:
            return outgoing.read()
        raise AssertionError("no response")

    @property
    def opened(self) -> int:
        """Return how many connections have been opened."""
        return sum(self._table.metrics.connections_opened.values())

    def until_closed(self, opened: int) -> None:
        """Wait until this many connections have been opened and all are closed."""
        eventually(lambda: self.opened == opened and not len(self._table))
        self.server.call(next_turn())

    @property
    def _table(self) -> ConnectionTable:
        table = self.server.server.reception.table
        assert table is not None
        return table


def login_frame(password: str) -> bytes:
    token = {"auth_bytes": f"\0alice\0{password}".encode()}
    return request_frame(ApiKey.SASL_AUTHENTICATE, 1, token)


def fetch_frame() -> bytes:
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1,
    }
    body = {
        "replica_id": -1,
        "max_wait_ms": 600_000,
        "min_bytes": 1 << 20,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return request_frame(ApiKey.FETCH, 12, body)


def join_frame() -> bytes:
    body = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 600_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    return request_frame(ApiKey.JOIN_GROUP, 3, body)


HANDSHAKE = request_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
SLOW_HANDSHAKE = request_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
API_VERSIONS = request_frame(ApiKey.API_VERSIONS, 0, {})
METADATA = request_frame(ApiKey.METADATA, 9, {"topics": None})
SCRAM_FIRST = request_frame(ApiKey.SASL_AUTHENTICATE, 1, {"auth_bytes": b"n,,n=alice,r=abc"})
UNKNOWN_KEY = struct.pack(">ihhih", 10, 999, 0, 0, -1)


def said(*data: bytes) -> Callable[[Doors, str], socket.socket]:

    def begin(doors: Doors, listener: str) -> socket.socket:
        sock = doors.within(listener)
        for chunk in data:
            sock.sendall(chunk)
        return sock

    return begin


def known_said(data: bytes) -> Callable[[Doors, str], socket.socket]:

    def begin(doors: Doors, listener: str) -> socket.socket:
        sock = doors.known(listener)
        sock.sendall(data)
        return sock

    return begin


def raw_said(data: Callable[[Doors], bytes]) -> Callable[[Doors, str], socket.socket]:

    def begin(doors: Doors, listener: str) -> socket.socket:
        sock = doors.connect(listener)
        sock.sendall(data(doors))
        return sock

    return begin


PLACES: dict[str, Callable[[Doors, str], socket.socket]] = {
    "nothing": raw_said(lambda _doors: b""),
    "no request": raw_said(lambda _doors: bytes(100)),
    "http": raw_said(lambda _doors: b"GET / HTTP/1.1\r\n\r\n"),
    "half a request": said(API_VERSIONS[:6]),
    "too long a request": said(b"\x7f\xff\xff\xff"),
    "ApiVersions": said(API_VERSIONS),
    "Metadata": known_said(METADATA),
    "a request of an unknown kind": known_said(UNKNOWN_KEY),
    "a Fetch that waits": known_said(fetch_frame()),
    "Fetches behind it": known_said(fetch_frame() * 3),
    "a JoinGroup that waits": known_said(join_frame()),
    "many requests": known_said(METADATA * 50),
}
# The cases that no deadline ends.
WAITING_PLACES = {"a Fetch that waits", "Fetches behind it", "a JoinGroup that waits"}
TLS_PLACES: dict[str, Callable[[Doors, str], socket.socket]] = {
    "hello": raw_said(lambda doors: doors.hello()),
    "half a hello": raw_said(lambda doors: doors.hello()[:50]),
    "hello and no more TLS": raw_said(lambda doors: doors.hello() + bytes(100)),
}
SASL_PLACES: dict[str, Callable[[Doors, str], socket.socket]] = {
    "a mechanism": said(HANDSHAKE),
    "a wrong password": said(HANDSHAKE, login_frame("wrong")),
    "half a login in a thread": said(SLOW_HANDSHAKE, SCRAM_FIRST),
    "not a login": said(HANDSHAKE, METADATA),
}


def close(sock: socket.socket) -> None:
    sock.close()


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def half_close(sock: socket.socket) -> None:
    socket.socket.shutdown(sock, socket.SHUT_WR)  # no close_notify from TLS


def stay(_sock: socket.socket) -> None:
    """Let the broker end it."""


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    opened = Doors(tmp_path_factory.mktemp("doors"))
    with opened.server:
        opened.furnish()
        yield opened


@pytest.fixture(scope="module")
def uncollected(doors: Doors) -> Iterator[None]:
    for listener in LISTENERS:  # run imports and one-time initialization first
        doors.known(listener).close()
    doors.until_closed(doors.opened)
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    collect_frozen()


def places(listener: str) -> dict[str, Callable[[Doors, str], socket.socket]]:
    stages = dict(PLACES)
    if listener in SECURED:
        stages |= TLS_PLACES
    if listener.startswith("SASL"):
        stages |= SASL_PLACES
    return stages


def cases() -> Iterator[tuple[str, tuple[str, ...], Callable[[socket.socket], None]]]:
    """Name the cases; those that the broker ends run together, because they take long."""
    for listener in LISTENERS:
        for stage in places(listener):
            yield from ((listener, (stage,), end) for end in (close, reset, half_close))
        yield listener, tuple(name for name in places(listener) if name not in WAITING_PLACES), stay


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("listener", "names", "end"),
    [pytest.param(*each, id=f"{each[0]}-{each[1][0]}-{each[2].__name__}") for each in cases()],
)
def test_closed_connection_leaves_no_garbage_cycles(
    doors: Doors, listener: str, names: tuple[str, ...], end: Callable[[socket.socket], None]
) -> None:
    opened = doors.opened + COUNT * len(names)
    begin = places(listener)
    peers = [begin[name](doors, listener) for name in names for _ in range(COUNT)]
    for peer in peers:
        end(peer)
    doors.until_closed(opened)
    for peer in peers:
        peer.close()
    assert gc.collect() < COUNT


def creation(name: str, refused: int) -> bytes:
    """Return a CreateTopics of one topic after `refused` invalid names."""
    topics = [
        {"name": topic_name, "num_partitions": 1, "replication_factor": 1}
        for topic_name in (*(f"no name {number}!" + "-" * 40 for number in range(refused)), name)
    ]
    return request_frame(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 10_000})


def end_offset(client: BlockingClient) -> int:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    body = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    offset: int = client.ask(ApiKey.LIST_OFFSETS, 7, body).topics[0].partitions[0].offset
    return offset


def names_of(client: BlockingClient) -> set[str]:
    return {topic.name for topic in client.ask(ApiKey.METADATA, 9, {"topics": None}).topics}


@pytest.mark.parametrize("end", [close, half_close], ids=lambda end: end.__name__)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SSL"])
def test_requests_sent_before_the_end_are_executed(
    doors: Doors, listener: str, end: Callable[[socket.socket], None]
) -> None:
    client = BlockingClient((HOST, doors.ports["PLAINTEXT"]))
    offset = end_offset(client)
    records = {(TOPIC, 0): batch(b"a")}
    requests = [
        request_frame(ApiKey.PRODUCE, 9, produce_request(records, acks=acks)) for acks in (0, 1, -1)
    ]
    # The longer one is decoded in a thread.
    created = {f"{listener}-{end.__name__}-{refused}": refused for refused in (0, 2_000)}
    requests += [creation(name, refused) for name, refused in created.items()]
    for request in requests:
        with doors.within(listener) as sock:
            # Also reads the TLS session tickets: a close with unread data resets the connection,
            # and the reset may overtake the request.
            sock.sendall(request_frame(ApiKey.API_VERSIONS, 0, {}))
            assert sock.recv(10_000)
            sock.sendall(request)
            end(sock)
    eventually(lambda: end_offset(client) == offset + 3)
    eventually(lambda: created.keys() <= names_of(client))
    client.close()
