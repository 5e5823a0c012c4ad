"""TLS 1.3 records that Python's ssl does not send: repeated key updates (RFC 8446, 7)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from pathlib import Path

_HASH: Final = "sha384"  # of TLS_AES_256_GCM_SHA384, which both sides prefer
_HASH_BYTES: Final = 48
_HANDSHAKE: Final = 22
_DATA: Final = 23


class KeyUpdates:
    """The client's side of one connection after its handshake.

    Args:
        keys: The key log file of the client's context (keylog_filename).
    """

    def __init__(self, keys: Path) -> None:
        lines = [line.split() for line in keys.read_text().splitlines()]
        (secret,) = [line[2] for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0"]
        self._use(bytes.fromhex(secret))

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher = AESGCM(_expand(secret, b"key", 32))
        self._start = int.from_bytes(_expand(secret, b"iv", 12))
        self._number = 0

    def _record(self, content: bytes, kind: int) -> bytes:
        plain = content + bytes([kind])
        head = b"\x17\x03\x03" + (len(plain) + 16).to_bytes(2)
        nonce = (self._start ^ self._number).to_bytes(12)
        self._number += 1
        return head + self._cipher.encrypt(nonce, plain, head)

    def new_keys(self, count: int) -> bytes:
        records = []
        for _ in range(count):
            records.append(self._record(b"\x18\x00\x00\x01\x00", _HANDSHAKE))
            self._use(_expand(self._secret, b"traffic upd", _HASH_BYTES))
        return b"".join(records)

    def data(self, content: bytes) -> bytes:
        return self._record(content, _DATA)


def _expand(secret: bytes, label: bytes, count: int) -> bytes:
    """HKDF-Expand-Label of at most one block, without a context."""
    label = b"tls13 " + label
    info = count.to_bytes(2) + bytes([len(label)]) + label + b"\x00"
    return hmac.digest(secret, info + b"\x01", _HASH)[:count]
