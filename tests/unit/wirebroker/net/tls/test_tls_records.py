"""TLS work for a peer is bounded in records, whatever their size."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.security.tls_files import certificate, client_side, write
from tests.support.security.tls_key_updates import KeyUpdates
from wirebroker.net.tls.tls_engine import (
    BYTES_FOR_IDLE_RECORD,
    MOST_HANDSHAKE_RECORDS,
    MOST_IDLE_RECORDS,
    MOST_RECORDS,
    PLAIN_BYTES,
    TlsEngine,
)
from wirebroker.net.tls.tls_error import TlsFailedError

if TYPE_CHECKING:
    from pathlib import Path

BUFFER_BYTES = 256 << 10


class CountedReads(ssl.SSLObject):
    reads = 0

    def read(self, *arguments: Any) -> Any:
        CountedReads.reads += 1
        return super().read(*arguments)


class Pair:
    def __init__(self, folder: Path, trailing_updates: str = "") -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(write(folder, "key.pem", certificate()))
        context.sslobject_class = CountedReads
        self.engine = TlsEngine(context)
        CountedReads.reads = 0
        side = client_side(folder)
        side.keylog_filename = str(folder / "keys.txt")
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = side.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        assert not self.engine.shake_hands(memoryview(self.outgoing.read()))
        self.incoming.write(self.engine.said())
        self.tls.do_handshake()
        self.own = KeyUpdates(folder / "keys.txt")
        updates = self.own.new_keys(int(trailing_updates)) if trailing_updates else b""
        assert self.engine.shake_hands(memoryview(self.outgoing.read() + updates))
        self.buffer = memoryview(bytearray(BUFFER_BYTES))

    def receive(self, records: bytes) -> int:
        CountedReads.reads = 0
        return self.engine.receive(memoryview(records), self.buffer)

    def go_on(self) -> int:
        CountedReads.reads = 0
        return self.engine.decrypt(self.buffer)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize("size", [1, 100])
def test_small_records_per_decrypt_call_are_limited(pair: Pair, size: int) -> None:
    records = b"".join(pair.own.data(b"x" * size) for _ in range(300))
    count = pair.receive(records)
    assert count == MOST_RECORDS * size
    while not pair.engine.is_drained:
        assert CountedReads.reads <= MOST_RECORDS
        decrypted = pair.go_on()
        assert decrypted > 0
        count += decrypted
    assert count == 300 * size
    assert pair.engine.held_bytes == pair.engine.outgoing_bytes


@pytest.mark.parametrize("kind", ["keys", "empty"])
def test_too_many_records_without_data_are_refused(pair: Pair, kind: str) -> None:
    def some(count: int) -> bytes:
        if kind == "keys":
            return pair.own.new_keys(count)
        return b"".join(pair.own.data(b"") for _ in range(count))

    assert pair.receive(some(MOST_IDLE_RECORDS)) == 0
    assert pair.receive(pair.own.data(b"hello")) == 5
    with pytest.raises(TlsFailedError, match="without data"):
        pair.receive(some(2_000))
    assert CountedReads.reads <= 1


def test_one_byte_of_data_allows_no_more_key_updates(pair: Pair) -> None:
    def some() -> bytes:
        return b"".join(pair.own.new_keys(1) + pair.own.data(b"x") for _ in range(20))

    assert pair.receive(some()) == 20
    with pytest.raises(TlsFailedError, match="without data"):
        pair.receive(some())


def test_key_updates_are_allowed_in_proportion_to_data(pair: Pair) -> None:
    pieces = PLAIN_BYTES // BYTES_FOR_IDLE_RECORD
    for _ in range(100):
        records = pair.own.new_keys(pieces) + pair.own.data(b"x" * PLAIN_BYTES)
        assert pair.receive(records) == PLAIN_BYTES


def test_key_updates_with_the_end_of_the_handshake_are_deferred(tmp_path: Path) -> None:
    pair = Pair(tmp_path, trailing_updates="600")
    assert CountedReads.reads == 0
    with pytest.raises(TlsFailedError, match="without data"):
        pair.go_on()
    assert CountedReads.reads <= MOST_IDLE_RECORDS + 1


def test_handshake_in_tiny_records_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write(tmp_path, "key.pem", certificate()))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_side(tmp_path).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()[5:]
    assert len(hello) > MOST_HANDSHAKE_RECORDS
    crumbs = b"".join(b"\x16\x03\x01\x00\x01" + bytes([byte]) for byte in hello)
    with pytest.raises(TlsFailedError, match="records"):
        TlsEngine(context).shake_hands(memoryview(crumbs))
