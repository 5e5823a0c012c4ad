"""The state of one client connection, independent of its transport.

The connection in `net/` updates it; handlers read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.envelope import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.request_meters import RequestMeter
    from wirebroker.request.deferred_response import DeferredResponse

# Bits of `Session.pauses`.
ANSWER_IS_DUE: Final = 1  # a request is being served
OUTPUT_IS_UNSENT: Final = 2  # the client reads slowly
TURN_IS_OVER: Final = 4  # other connections are served first
MEMORY_IS_SHORT: Final = 8  # requests in flight are at their limit
THROTTLED: Final = 16
ENDING: Final = 32  # closes after the pending responses


ANONYMOUS: Final = Principal()

# `Session.throttle_ms` of replicas, which have no client quotas.
NO_CLIENT: Final = -1


class Prepared:
    """The fast path for requests like a session's last one (api/data/prepared_produce.py).

    Attributes:
        epoch: The only epoch of RequestAdmission in which it is valid.
        kind: API key << 16 | version, for the request counts.
        begun: Progress of the frame for which `serve` returned None, which has been admitted.
    """

    __slots__ = ("begun", "epoch", "kind")

    def __init__(self, epoch: int, kind: int) -> None:
        self.epoch = epoch
        self.kind = kind
        self.begun: Mapping[int, Any] | None = None

    def serve(self, frame: memoryview) -> bytes | DeferredResponse | None:
        """Return the response with its length; None for the full path."""
        raise NotImplementedError


def no_mute(seconds: float) -> None:
    """Do nothing: the default of `Session.mute`."""


class Session:
    """One client's connection.

    Attributes:
        id: Unique in this process, in Kafka's form `local:port-remote:port-number`.
        peer: The client's `host:port`.
        local_host: The address that the client connected to.
        principal: ANONYMOUS until the client authenticates.
        client_software_name: From ApiVersions (KIP-511), as is the version.
        pauses: Reasons to serve no further request, as bits.
        last_produced: Topic id of its last Produce request if that had one topic.
        epoch: The epoch of RequestAdmission that admitted its last request.
        has_ended: Whether the peer sends no more, or has disconnected.
        received_s: When the current request arrived (request_meters.py's stopwatch); 0.0: unknown.
        last_meter: The meter of its last response.
        is_follower: Whether its last Fetch came from a replica.
        access: Cached decisions (authorization/access.py).
        throttle_ms: Throttle time that a handler has determined, or NO_CLIENT.
        mute: Pauses the connection for a number of seconds.
    """

    __slots__ = (
        "_on_close",
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
        self.mute: Callable[[float], object] = no_mute
        self._on_end: Callable[[], object] | None = None
        self._on_close: dict[str, Callable[[str], object]] = {}

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call back once if the peer disconnects, or has, before the current request's response."""
        if self.has_ended:
            callback()
        else:
            self._on_end = callback

    def when_closed(self, name: str, callback: Callable[[str], object]) -> None:
        """Call back once with the session's id when the peer disconnects, or has.

        A callback replaces an earlier one of the same name.
        """
        if self.has_ended:
            callback(self.id)
        else:
            self._on_close[name] = callback

    def answered(self) -> None:
        """Note that the current request no longer waits."""
        self._on_end = None

    def end(self) -> None:
        """Note that the peer sends no more."""
        self.has_ended = True
        callback, self._on_end = self._on_end, None
        if callback is not None:
            callback()
        callbacks, self._on_close = self._on_close, {}
        for on_close in callbacks.values():
            on_close(self.id)
