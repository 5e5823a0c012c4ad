"""A proxy between producers and a broker that drops the connection at chosen Produce requests.

It drops it before the request reaches the broker (nothing is appended), or after the broker's
response (the batch is appended, and the producer does not know). Either way, an idempotent
producer's messages must be stored once and in order.
"""

from __future__ import annotations

import socket
import threading
from typing import Literal

HOST = "127.0.0.1"
_PRODUCE = 0
_CONNECT_TIMEOUT_S = 10.0

When = Literal["before", "after"]


class CuttingProxy:
    """Forwards whole frames, one request at a time, until a cut is due.

    Every request needs a response, so it does not support acks=0.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.target_port = 0
        self._lock = threading.Lock()
        self._when: When = "before"
        self._at: frozenset[int] = frozenset()
        self._produce_count = 0
        self.cut_count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def cut(self, when: When, at: set[int]) -> None:
        """Drop the connection at these Produce requests, counted from 1 from now on."""
        with self._lock:
            self._when, self._at = when, frozenset(at)
            self._produce_count = self.cut_count = 0

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        target = (HOST, self.target_port)
        try:
            with client, socket.create_connection(target, _CONNECT_TIMEOUT_S) as broker:
                broker.settimeout(None)
                while self._relay_one(client, broker):
                    pass
        except OSError:
            pass  # either end may close at any time; the other is closed on exit

    def _relay_one(self, client: socket.socket, broker: socket.socket) -> bool:
        """Relay one request and its response; return whether the connection is still open."""
        request = _read_frame(client)
        if request is None:
            return False
        cut = self._is_cut_due(request)
        if cut == "before":
            return False
        broker.sendall(request)
        answer = _read_frame(broker)
        if answer is None or cut == "after":
            return False
        client.sendall(answer)
        return True

    def _is_cut_due(self, request: bytes) -> When | None:
        if int.from_bytes(request[4:6]) != _PRODUCE:
            return None
        with self._lock:
            self._produce_count += 1
            if self._produce_count not in self._at:
                return None
            self.cut_count += 1
            return self._when


def _read_frame(source: socket.socket) -> bytes | None:
    """Read one length-prefixed frame, including the prefix; None at the end of the stream."""
    prefix = _read_exactly(source, 4)
    if prefix is None:
        return None
    body = _read_exactly(source, int.from_bytes(prefix))
    return None if body is None else prefix + body


def _read_exactly(source: socket.socket, length: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < length:
        chunk = source.recv(length - len(parts))
        if not chunk:
            return None
        parts += chunk
    return bytes(parts)
