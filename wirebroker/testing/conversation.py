"""What the kit itself asks a broker: with a time limit, and again where that helps."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from wirebroker.clock import SystemClock, pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings
from wirebroker.net.client.transport import TcpDialer

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.net.client.connection import Body
    from wirebroker.net.client.settings import PeerAddress

# How the kit is called in what a broker logs.
CLIENT_ID: Final = "wirebroker.testing"
# What passes by itself: something is being made, loaded or led elsewhere.
_PASSING: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_PAUSE_S: Final = 0.005
# How much later than somebody's patience an answer may come: a busy machine is no failure.
_GRACE_S: Final = 10.0


class Patience:
    """How long somebody waits, from now on.

    Attributes:
        seconds: How long that was in the beginning.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._clock = SystemClock()
        self._end = self._clock.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """How many seconds are left, 0 when it has passed."""
        return max(0.0, self._end - self._clock.monotonic())


class Conversation:
    """One connection to one broker, made when it is needed."""

    def __init__(self, address: PeerAddress) -> None:
        self._node = Node(
            address,
            dialer=TcpDialer(),
            settings=ClientSettings(client_id=CLIENT_ID),
            clock=SystemClock(),
            random=random.Random(),  # noqa: S311 - pauses, no secrets
        )

    async def ask(
        self, key: ApiKey, body: Body, patience: Patience, *, at_most: int | None = None
    ) -> Any:
        """Send a request and return its decoded answer, whatever it says.

        Raises:
            PeerError: There is no answer, not even some seconds later than that.
        """
        timeout_s = patience.left_s + _GRACE_S
        return await self._node.request(key, body, timeout_s=timeout_s, at_most=at_most)

    async def is_worth_another_try(self, code: int, patience: Patience) -> bool:
        """Tell whether an error passes by itself; then a moment has passed already."""
        if code not in _PASSING or patience.left_s <= _PAUSE_S:
            return False
        await pause(_PAUSE_S)
        return True

    def break_off(self) -> None:
        """Close the connection; whoever waits for an answer gets a PeerError."""
        self._node.abort()


def check(code: int, message: str) -> None:
    """Raise what an answer reports.

    Raises:
        KafkaError: The code is one of an error.
    """
    if code:
        raise KafkaError(ErrorCode(code), message)
