"""What is known of one client's connection, whatever carries it (socket, memory, TLS).

A connection of `net/` owns its session and tells it of the peer; handlers read it. The principal
stays ANONYMOUS until there is authentication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.envelope import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.request_meters import RequestMeter
    from wirebroker.request.owed_answer import OwedAnswer

# Why no further request of a session is served for now: bits of `Session.pauses`.
ANSWER_IS_DUE: Final = 1  # one is being served
OUTPUT_IS_UNSENT: Final = 2  # its peer reads slowly
TURN_IS_OVER: Final = 4  # others have theirs
MEMORY_IS_SHORT: Final = 8  # requests in flight hold what they may
THROTTLED: Final = 16  # a quota is exceeded
ENDING: Final = 32  # it closes when what it is owed has left


ANONYMOUS: Final = Principal()

# In `Session.throttle_ms`: it is no client that has quotas, but a replica.
NO_CLIENT: Final = -1


class Prepared:
    """Serves requests like the last one of a session by a short way (api/data/prepared_produce.py).

    Attributes:
        epoch: The gate's when it was prepared: it holds for that one alone (gate.py).
        kind: API key << 16 | version of the requests, by which they are counted.
        begun: What is done of the frame for which `serve` returned None; None if nothing is. Such
            a frame was let through: nothing refuses it any more.
    """

    __slots__ = ("begun", "epoch", "kind")

    def __init__(self, epoch: int, kind: int) -> None:
        self.epoch = epoch
        self.kind = kind
        self.begun: Mapping[int, Any] | None = None

    def serve(self, frame: memoryview) -> bytes | OwedAnswer | None:
        """Return the answer with its length; None if the frame has to go the whole way."""
        raise NotImplementedError


def nobody_mutes(seconds: float) -> None:
    """Stand in for a connection's way to be silent until there is one."""


class Session:
    """One client's connection.

    Attributes:
        id: Unique in this process, in Kafka's form `local:port-remote:port-number`.
        peer: The other side as `host:port`.
        listener_name: The listener that accepted it.
        local_host: The address at which the peer reached us.
        local_port: The port at which the peer reached us.
        principal: Who the client is.
        client_software_name: As said in ApiVersions (KIP-511), else "unknown".
        client_software_version: Likewise.
        pauses: Why no further request is served for now; 0 if nothing is in the way.
        last_produced: Id of the topic to which its last Produce request went, if to one alone.
        prepared: What requests like that one need not tell again.
        epoch: The gate's when its last request was let through.
        has_ended: Whether the peer sends no more, or is gone.
        received_s: When the loop noticed the bytes of the request in hand, on the stopwatch of
            request_meters.py; 0.0 if that is not known.
        last_meter: Of its last response (request_meters.py), None if that is not measured.
        is_follower: Whether its last Fetch was that of a replica.
        access: What was decided about the client (authorization/access.py), if anything was asked.
        throttle_ms: What a handler has found that quotas hold the client up for, or
            NO_CLIENT.
        mute: Serves no further request for so many seconds; the connection's.
    """

    __slots__ = (
        "_on_end",
        "access",
        "client_software_name",
        "client_software_version",
        "epoch",
        "has_ended",
        "id",
        "is_follower",
        "last_meter",
        "last_produced",
        "listener_name",
        "local_host",
        "local_port",
        "mute",
        "pauses",
        "peer",
        "prepared",
        "principal",
        "received_s",
        "throttle_ms",
    )

    def __init__(
        self,
        *,
        connection_id: str,
        peer: str,
        listener_name: str,
        local_host: str,
        local_port: int,
    ) -> None:
        self.id = connection_id
        self.peer = peer
        self.listener_name = listener_name
        self.local_host = local_host
        self.local_port = local_port
        self.principal = ANONYMOUS
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.pauses = 0
        self.last_produced = b""
        self.prepared: Prepared | None = None
        self.epoch = 0
        self.has_ended = False
        self.received_s = 0.0
        self.is_follower = False
        self.last_meter: RequestMeter | None = None
        self.access: object = None
        self.throttle_ms = 0
        self.mute: Callable[[float], object] = nobody_mutes
        self._on_end: Callable[[], object] | None = None

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call back once if the peer ends, or has, before the request in hand is answered.

        For handlers whose request only waits: what nobody will read should cost nobody anything.
        """
        if self.has_ended:
            callback()
        else:
            self._on_end = callback

    def answered(self) -> None:
        """Note that the request in hand waits no more."""
        self._on_end = None

    def end(self) -> None:
        """Note that the peer sends no more."""
        self.has_ended = True
        callback, self._on_end = self._on_end, None
        if callback is not None:
            callback()
