"""A connection for transcripts: it sends one frame and waits for the response."""

from __future__ import annotations

import socket

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey

TIMEOUT_S = 30.0
_CLIENT_ID = b"transcript"


class Connection:
    """One connection with one request at a time."""

    def __init__(
        self, host: str, port: int, *, source: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        """Connect, optionally from a given local address."""
        from_address = (source, 0) if source else None
        self._socket = socket.create_connection(
            (host, port), timeout=timeout_s, source_address=from_address
        )
        self._correlation_id = 0

    def close(self) -> None:
        self._socket.close()

    def send(self, key: ApiKey, version: int, body: bytes) -> int:
        self._correlation_id += 1
        head = key.to_bytes(2) + version.to_bytes(2) + self._correlation_id.to_bytes(4)
        head += len(_CLIENT_ID).to_bytes(2) + _CLIENT_ID
        spoken = SPOKEN_VERSIONS[key]
        if version >= min(spoken.first_flexible, spoken.max_version + 1):
            head += b"\x00"
        frame = head + body
        self._socket.sendall(len(frame).to_bytes(4) + frame)
        return self._correlation_id

    def receive(self) -> bytes | None:
        """Return the next response frame, or None if the broker disconnects."""
        prefix = self._read(4)
        return None if prefix is None else self._read(int.from_bytes(prefix))

    def _read(self, length: int) -> bytes | None:
        data = bytearray()
        while len(data) < length:
            try:
                chunk = self._socket.recv(length - len(data))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            data += chunk
        return bytes(data)
