"""A peer that renegotiates repeatedly (RFC 5246, 7.4.1.1) and does not read."""

from __future__ import annotations

import asyncio
import hmac
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.security.tls_files import client_side
from tests.support.security.tls_memory_client import TlsMemoryClient
from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.net.tls.test_tls_transport import serve_tls, settings
from wirebroker.base.clock import next_turn
from wirebroker.net.memory_transport import connect

if TYPE_CHECKING:
    from pathlib import Path

AES_GCM = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead").AESGCM

CLIENT_HELLO = b"\x01\0\0\0"
HANDSHAKE_RECORD = b"\x16\x03\x03"


class RenegotiatingClient(TlsMemoryClient):
    """The client side of TLS 1.2 in memory, which writes records that no library would."""

    def __init__(self, peer, context: ssl.SSLContext, keys: Path) -> None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
        context.keylog_filename = str(keys)
        super().__init__(peer, context)
        self.keys = keys
        # Its Finished message had sequence number 0.
        self.number = 1

    async def shake_hands(self) -> None:
        await self.until_done(self.begin)
        _, client_random, master = self.keys.read_text().splitlines()[-1].split()
        # After the record header, the message header and the version.
        seed = b"key expansion" + self.received[11:43] + bytes.fromhex(client_random)
        block = _expanded(bytes.fromhex(master), seed, 40)
        self.cipher, self.salt = AES_GCM(block[:16]), block[32:36]

    def hello_again(self) -> bytes:
        number = self.number.to_bytes(8)
        self.number += 1
        about = number + HANDSHAKE_RECORD + len(CLIENT_HELLO).to_bytes(2)
        sealed = number + self.cipher.encrypt(self.salt + number, CLIENT_HELLO, about)
        return HANDSHAKE_RECORD + len(sealed).to_bytes(2) + sealed


def _expanded(secret: bytes, seed: bytes, count: int) -> bytes:
    """Return bytes derived from a secret (RFC 5246, 5)."""
    expanded, link = b"", seed
    while len(expanded) < count:
        link = hmac.digest(secret, link, "sha256")
        expanded += hmac.digest(secret, link + seed, "sha256")
    return expanded[:count]


@pytest.mark.parametrize("is_held_up", [False, True], ids=["read", "held up by a quota"])
async def test_renegotiation_is_refused(tmp_path: Path, *, is_held_up: bool) -> None:
    async with serve_tls(settings(versions=("TLSv1.2",))) as server:
        client = RenegotiatingClient(connect(server.table), client_side(tmp_path), tmp_path / "k")
        await client.shake_hands()
        (connection,) = server.table._connections
        if is_held_up:
            connection.throttle(3600)
        client.take()
        client.received = b""
        client.peer.send(client.hello_again())
        async with asyncio.timeout(PATIENCE_S):
            while not client.received:
                await next_turn()
                client.take()
        alert = 21
        assert client.received[0] == alert


async def test_repeated_renegotiation_without_reading_closes(tmp_path, caplog) -> None:
    async with serve_tls(settings(versions=("TLSv1.2",))) as server:
        client = RenegotiatingClient(connect(server.table), client_side(tmp_path), tmp_path / "k")
        await client.shake_hands()
        (connection,) = server.table._connections
        transport: Any = connection._transport
        peak_bytes = 0
        for _ in range(50):
            client.peer.send(b"".join(client.hello_again() for _ in range(400)))
            for _ in range(20):
                await next_turn()
            peak_bytes = max(
                peak_bytes, transport._sending.held_bytes + transport._engine.held_bytes
            )
            if not server.table._connections:
                break
        # The input of one piece, and one piece that the carrier does not accept.
        assert peak_bytes < 2 * (64 << 10)
        assert not server.table._connections
        assert "it sends too many records without data" in caplog.text
