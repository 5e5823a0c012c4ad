"""The broker's outgoing connections on a faulty network, with faulty peers and many callers.

Bytes arrive late and in pieces, and links break within a frame. Peers hang, refuse, and send
unrequested or invalid responses. Some callers are canceled. Each request carries a token, which a
correct peer returns.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.machine.loop import SimulatedClock, SimulatedLoop
from tests.support.replicas.memory_peers import Asked, Link, Peer
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import Backoff, ClientSettings, PeerAddress

if TYPE_CHECKING:
    from wirebroker.net.client.transport import Receiver, Transport

_PEERS = 3
_ASKERS = 12
_REQUESTS = 15
_LARGEST_TOKEN = 150_000
# Tolerance of deadlines: the loop's precision and the decoding of a long response in a thread.
_LATE_S = 1e-3
_DECODING_S = 2.0

SETTINGS = ClientSettings(
    client_id="simulation",
    connect_timeout_s=2.0,
    request_timeout_s=3.0,
    max_in_flight=3,
    max_response_bytes=200_000,
    idle_s=20.0,
    reconnect=Backoff(first_s=0.05, most_s=1.0),
)


class StormyLink(Link):
    """A link that delivers bytes late, in order, and sometimes never."""

    def __init__(self, peer: StormyPeer, receiver: Receiver, random: Random) -> None:
        super().__init__(peer, receiver)
        self._random = random
        self._loop = asyncio.get_running_loop()
        # Arrival time of the last bytes in flight, to the peer and to the client.
        self._there_at = 0.0
        self._here_at = 0.0
        self._is_broken = False
        self.unanswered = 0
        self.most_unanswered = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_closed:
            return
        if self._random.random() < 0.01:
            self._later(self.drop, ConnectionResetError("lost on the way there"))
            return
        self._there_at = max(self._there_at, self._loop.time()) + self._delay()
        self._loop.call_at(self._there_at, self._arrive, bytes(data))

    def send(self, data: bytes, *, piece: int = 1 << 20) -> None:
        random = self._random
        if self._is_broken:
            return
        if random.random() < 0.03:  # the link breaks within the response
            self._is_broken = True
            data = data[: random.randrange(len(data))]
            self._later(self.drop, ConnectionResetError("lost on the way back"), after_s=1.0)
        max_piece = random.choice([1 << 20, 60_000, 7, 1]) if len(data) < 300 else 60_000
        while data:
            count = random.randint(1, max_piece)
            self._here_at = max(self._here_at, self._loop.time()) + self._delay() / 10
            self._loop.call_at(self._here_at, super().send, data[:count])
            data = data[count:]

    def _arrive(self, data: bytes) -> None:
        if not self.is_closed:
            self.arrive(data)

    def _later(self, callback, *arguments, after_s: float = 0.0) -> None:
        self._loop.call_later(after_s + self._delay(), callback, *arguments)

    def _delay(self) -> float:
        """Return a mostly short delay, never zero (for order), at times longer than any timeout."""
        if self._random.random() < 0.003:
            return 5.0
        return 1e-5 + 0.05 * self._random.random() ** 3


class StormyPeer(Peer):
    """A peer that behaves at random.

    Attributes:
        received: The tokens that have arrived.
    """

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self.received: set[bytes] = set()
        self.answers[ApiKey.SASL_AUTHENTICATE] = self._echo

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        await pause(0.02 * self._random.random())
        chance = self._random.random()
        self.hangs = chance < 0.05
        self.refuses = ConnectionRefusedError("refused") if chance > 0.85 else None
        return await super().dial(host, port, receiver)

    def make_link(self, receiver: Receiver) -> Link:
        return StormyLink(self, receiver, self._random)

    def _echo(self, request: Asked) -> None:
        link = request.link
        assert isinstance(link, StormyLink)
        link.unanswered += 1
        link.most_unanswered = max(link.most_unanswered, link.unanswered)
        token = request.body.auth_bytes
        self.received.add(token)
        chance = self._random.random()
        if chance < 0.01:
            return  # hang forever
        link.unanswered -= 1
        if chance < 0.02:
            request.answer_bytes(b"\x00\x00\x01", correlation_id=request.correlation_id)
        elif chance < 0.03:
            request.answer_bytes(b"", correlation_id=request.correlation_id + 1)
        elif chance < 0.04:
            wrong_size = self._random.choice([-5, 0, 3, 200_001, 2**31 - 1])
            link.send(wrong_size.to_bytes(4, signed=True) + b"what is this?")
        elif chance < 0.05:
            request.answer({"auth_bytes": token})
            request.answer({"auth_bytes": token})
        else:
            request.answer({"auth_bytes": token})


class ClientWorld:
    """The run of one seed.

    Attributes:
        trace: The events with their times; the same for the same seed.
    """

    def __init__(self, seed: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self.trace: list[str] = []
        self._random = Random(seed)
        self._loop = SimulatedLoop(self._random)
        self._peers: list[StormyPeer] = []

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _live(self) -> None:
        clock = SimulatedClock(self._loop)
        nodes: list[Node] = []
        for number in range(_PEERS):
            peer = StormyPeer(self._random)
            self._peers.append(peer)
            nodes.append(
                Node(
                    PeerAddress(f"peer-{number}", 9092),
                    dialer=peer,
                    settings=SETTINGS,
                    clock=clock,
                    random=self._random,
                )
            )
        await asyncio.gather(*(self._ask(number, nodes) for number in range(_ASKERS)))
        for node in nodes:
            await node.close()
        self._check_the_end()

    async def _ask(self, number: int, nodes: list[Node]) -> None:
        random = self._random
        for count in range(_REQUESTS):
            index = random.randrange(_PEERS)
            token = b"%d-%d-" % (number, count) + bytes(int(_LARGEST_TOKEN * random.random() ** 8))
            timeout_s = random.choice([0.01, 0.5, 3.0, 10.0])
            begin = self._loop.time()
            request = asyncio.create_task(
                nodes[index].request(
                    ApiKey.SASL_AUTHENTICATE, {"auth_bytes": token}, timeout_s=timeout_s
                )
            )
            if random.random() < 0.1:
                self._loop.call_later(0.1 * random.random(), request.cancel)
            await asyncio.wait([request])
            late_s = _LATE_S + (_DECODING_S if len(token) > 60_000 else 0)
            took_s = self._loop.time() - begin
            assert took_s <= timeout_s + late_s, f"{took_s} s instead of {timeout_s}"
            outcome = self._outcome(request, token, self._peers[index])
            self.outcomes[outcome] += 1
            self.trace.append(f"{self._loop.time():.6f} {number}-{count} {outcome}")
            await pause(random.choice([0.0, 0.0, 0.1, 0.3, 25.0]))

    def _outcome(self, request: asyncio.Task, token: bytes, peer: StormyPeer) -> str:
        if request.cancelled():
            return "cancelled"
        error = request.exception()
        if error is None:
            assert request.result().auth_bytes == token, "the answer is another request's"
            return "answered"
        assert isinstance(error, PeerError), error
        assert error.may_have_arrived or token not in peer.received, f"it has arrived: {error}"
        return type(error).__name__

    def _check_the_end(self) -> None:
        for peer in self._peers:
            for link in peer.links:
                assert link.is_closed, "a connection is left open"
                assert isinstance(link, StormyLink)
                assert link.most_unanswered <= SETTINGS.max_in_flight
        pending_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not pending_tasks, pending_tasks
