"""In-memory peers that receive connections and return scripted responses."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.codecs.primitives import skip_tagged_fields
from wirebroker.net.client.settings import Backoff, ClientSettings, PeerAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.net.client.transport import Receiver, Transport

PEER = PeerAddress("peer", 9092)
SETTINGS = ClientSettings(
    client_id="tests",
    connect_timeout_s=5.0,
    request_timeout_s=5.0,
    reconnect=Backoff(first_s=0.01, most_s=0.02),
)


class Clock:
    """The loop's time, which tests can advance."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now_ms(self) -> int:
        return int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead_s


class Asked:
    def __init__(self, link: Link, frame: bytes) -> None:
        self.link = link
        self.key = ApiKey(int.from_bytes(frame[:2]))
        self.version = int.from_bytes(frame[2:4])
        self.correlation_id = int.from_bytes(frame[4:8])
        name_end = 10 + int.from_bytes(frame[8:10])
        self.client_id = frame[10:name_end].decode()
        self.is_flexible = self.version >= SPOKEN_VERSIONS[self.key].first_flexible
        self.position = skip_tagged_fields(frame, name_end) if self.is_flexible else name_end
        self.frame = frame

    @property
    def body(self) -> Any:
        return decode_request(self.key, self.version, self.frame, self.position)

    def answer(self, fields: Mapping[str, Any]) -> None:
        self.answer_bytes(encode_response(self.key, self.version, fields))

    def answer_bytes(self, body: bytes, *, correlation_id: int | None = None) -> None:
        number = self.correlation_id if correlation_id is None else correlation_id
        has_tags = self.is_flexible and self.key != ApiKey.API_VERSIONS
        head = number.to_bytes(4) + (b"\x00" if has_tags else b"")
        self.link.send((len(head) + len(body)).to_bytes(4) + head + body)


class Link:
    """One connection, with the interface of both sides; the client uses it as its transport."""

    def __init__(self, peer: Peer, receiver: Receiver) -> None:
        self.local_host = "10.0.0.1"
        self.is_closed = False
        self.asked: list[Asked] = []
        self.peer = peer
        self.receiver = receiver
        self._bytes = bytearray()

    # --- what the client calls ---

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closed:
            self.arrive(bytes(data))

    def arrive(self, data: bytes) -> None:
        """Pass bytes from the client to the peer."""
        self._bytes += data
        while len(self._bytes) >= 4:
            stop = 4 + int.from_bytes(self._bytes[:4])
            if len(self._bytes) < stop:
                return
            request = Asked(self, bytes(self._bytes[4:stop]))
            del self._bytes[:stop]
            self.asked.append(request)
            asyncio.get_running_loop().call_soon(self.peer.on_asked, request)

    def close(self) -> None:
        self.drop(None)

    # --- what the peer does ---

    def send(self, data: bytes, *, piece: int = 1 << 20) -> None:
        """Pass bytes to the client, in pieces of at most `piece`."""
        while data and not self.is_closed:
            buffer = self.receiver.get_buffer()
            count = min(len(buffer), piece, len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.receiver.buffer_updated(count)

    def drop(self, error: Exception | None = None) -> None:
        """Close the connection; the client is notified in a later turn, as by a socket."""
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.receiver.lost, error)


class Peer:
    """A node that accepts connections.

    Attributes:
        answers: Handlers by API key; requests with other keys never get a response.
        versions: The versions in its ApiVersions response.
        dials: The number of connection attempts.
        refuses: The error of each connection attempt, if set.
        hangs: Whether connection attempts never end.
    """

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.versions = dict(SPOKEN_VERSIONS)
        self.dials = 0
        self.refuses: OSError | None = None
        self.hangs = False
        self.answers: dict[ApiKey, Callable[[Asked], None]] = {
            ApiKey.API_VERSIONS: self._tell_versions,
        }

    @property
    def link(self) -> Link:
        return self.links[-1]

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        del host, port
        self.dials += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses is not None:
            raise self.refuses
        link = self.make_link(receiver)
        self.links.append(link)
        return link

    def make_link(self, receiver: Receiver) -> Link:
        return Link(self, receiver)

    def on_asked(self, asked: Asked) -> None:
        answer = self.answers.get(asked.key)
        if answer is not None and not asked.link.is_closed:
            answer(asked)

    def _tell_versions(self, request: Asked) -> None:
        keys = [
            {
                "api_key": key,
                "min_version": versions.min_version,
                "max_version": versions.max_version,
            }
            for key, versions in self.versions.items()
        ]
        request.answer({"api_keys": keys})


class Peers:
    """Peers by address; other addresses refuse connections."""

    def __init__(self, *addresses: PeerAddress) -> None:
        self._peers = {address: Peer() for address in addresses}

    def __getitem__(self, address: PeerAddress) -> Peer:
        return self._peers[address]

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        peer = self._peers.get(PeerAddress(host, port))
        if peer is None:
            raise ConnectionRefusedError("no listener")
        return await peer.dial(host, port, receiver)


def seeded() -> random.Random:
    return random.Random(7)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await next_turn()
