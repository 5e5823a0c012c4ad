"""TLS without I/O: records are found however they are split, and requested once."""

from __future__ import annotations

import random
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.support.security.tls_files import certificate, client_side, write
from wirebroker.net.tls.tls_engine import RECORD_BYTES, TlsEngine
from wirebroker.net.tls.tls_error import TlsFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Client:
    def __init__(self, folder: Path, engine: TlsEngine) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client_side(folder).wrap_bio(
            self.incoming, self.outgoing, server_hostname="localhost"
        )
        is_done = False
        while not is_done:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                assert not is_done
            is_done = engine.shake_hands(memoryview(self.outgoing.read()))
            self.incoming.write(engine.said())

    def records(self, data: bytes) -> bytes:
        done = 0
        while done < len(data):
            done += self.tls.write(data[done:])
        return self.outgoing.read()


@pytest.fixture
def engine(tmp_path: Path) -> TlsEngine:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write(tmp_path, "key.pem", certificate()))
    return TlsEngine(context)


@pytest.fixture
def client(tmp_path: Path, engine: TlsEngine) -> Client:
    return Client(tmp_path, engine)


def cuts(records: bytes, random_source: random.Random) -> Iterator[memoryview]:
    remaining = memoryview(records)
    while remaining:
        size = random_source.choice((1, 2, 4, 5, 6, 21, 1000, 16_406, 40_000))
        yield remaining[:size]
        remaining = remaining[size:]


def test_records_are_decrypted_whatever_the_read_boundaries(
    engine: TlsEngine, client: Client
) -> None:
    random_source = random.Random(7)
    buffer = memoryview(bytearray(RECORD_BYTES))
    assert engine.decrypt(buffer) == 0
    for _ in range(30):
        data = random_source.randbytes(random_source.choice((1, 100, 16_384, 16_385, 50_000)))
        decrypted = b""
        for area in cuts(client.records(data), random_source):
            decrypted += buffer[: engine.receive(area, buffer)].tobytes()
            while not engine.is_drained:
                # The engine is undrained only if more is buffered: no call is wasted.
                count = engine.decrypt(buffer)
                assert count > 0
                decrypted += buffer[:count].tobytes()
        assert decrypted == data
        assert engine.held_bytes == 0


def test_partial_record_yields_nothing_yet(engine: TlsEngine, client: Client) -> None:
    buffer = memoryview(bytearray(100))
    engine.decrypt(buffer)
    records = client.records(b"hello")
    for size in (3, 10):
        assert engine.receive(memoryview(records[:size]), buffer) == 0
        assert engine.is_drained
        records = records[size:]
    assert engine.receive(memoryview(records), buffer) == 5
    assert bytes(buffer[:5]) == b"hello"


def test_a_small_buffer_leaves_the_rest(engine: TlsEngine, client: Client) -> None:
    buffer = memoryview(bytearray(3))
    engine.decrypt(buffer)
    assert engine.receive(memoryview(client.records(b"hello")), buffer) == 3
    assert not engine.is_drained
    assert engine.decrypt(buffer) == 2
    assert engine.is_drained


@pytest.mark.parametrize("record", [b"\x17\x03\x03\xff\xff", b"\x17\x03\x03\x00\x20" + bytes(32)])
def test_malformed_record_is_an_error_at_once(
    engine: TlsEngine, client: Client, record: bytes
) -> None:
    buffer = memoryview(bytearray(100))
    engine.decrypt(buffer)
    assert engine.receive(memoryview(client.records(b"hello")), buffer) == 5
    with pytest.raises(TlsFailedError):
        engine.receive(memoryview(record), buffer)


def test_close_notify_is_received_and_sent(engine: TlsEngine, client: Client) -> None:
    buffer = memoryview(bytearray(100))
    engine.decrypt(buffer)
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert engine.receive(memoryview(client.outgoing.read()), buffer) == 0
    assert engine.is_at_end
    engine.send_close_notify()
    assert engine.outgoing_bytes > 0
