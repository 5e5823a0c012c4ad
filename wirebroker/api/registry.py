"""Which function serves which API key, and what such a function is given.

A handler registers itself where it is defined:

    @handles(ApiKey.CREATE_TOPICS)
    def create_topics(broker, request, body): ...          # decoded body in, mapping out

    @handles_raw(ApiKey.PRODUCE)
    def produce(broker, request): ...                      # parses request.frame, returns pieces

Either may return its answer or an awaitable of it. What is advertised is what is registered, with
the version ranges of `codecs/api_keys.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.net.receive_area import ReceiveArea

if TYPE_CHECKING:
    from wirebroker.api.repeated_produce import RepeatedProduce
    from wirebroker.cluster.partition import Partition
    from wirebroker.storage.files import FileSlice

Piece: TypeAlias = "bytes | bytearray | memoryview | FileSlice"
# The body of an answer in pieces, sent one after the other; None is no answer (Produce, acks=0).
Reply: TypeAlias = "list[bytes | bytearray | memoryview | FileSlice] | None"

_Generic = TypeVar("_Generic", bound=Callable[..., Any])


class CloseConnectionError(Exception):
    """A handler's wish that the connection be closed without an answer; logged in one line."""


class ConnectionInfo:
    """What handlers may know about the connection that a request came on.

    Attributes:
        id: Unique in this process, in Kafka's form `local:port-remote:port-number`.
        peer: The other side as `host:port`.
        listener_name: The listener that accepted it.
        local_host: The address at which the peer reached us.
        local_port: The port at which the peer reached us.
        client_software_name: As said in ApiVersions (KIP-511), else "unknown".
        client_software_version: Likewise.
        last_produced: The partition to which its last Produce request went, if to one alone.
        repeated: What requests like that one need not tell again.
    """

    __slots__ = (
        "client_software_name",
        "client_software_version",
        "id",
        "last_produced",
        "listener_name",
        "local_host",
        "local_port",
        "peer",
        "repeated",
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
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.last_produced: Partition | None = None
        self.repeated: RepeatedProduce | None = None


class Request:
    """One request, as its handler sees it.

    Attributes:
        key: The API key.
        version: One of the versions that are served.
        correlation_id: Returned in the answer's header (done by dispatch).
        client_id: The client's name for itself.
        frame: The whole frame, header included, writable. It and all views into it are valid until
            the handler returns; see `keep`.
        position: Where the body starts in `frame`.
        connection: The connection it came on.
    """

    __slots__ = ("client_id", "connection", "correlation_id", "frame", "key", "position", "version")

    def __init__(  # noqa: PLR0917 - one per request: keywords would cost 0.1 us
        self,
        key: ApiKey,
        version: int,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        position: int,
        connection: ConnectionInfo,
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame = frame
        self.position = position
        self.connection = connection

    def keep(self) -> None:
        """Keep the frame, and every view into it, valid for as long as somebody holds them.

        Must be called before the handler returns an awaitable that uses them. Nothing is copied,
        but up to 1 MiB of memory lives as long as any of the views: a piece of a frame that is
        kept for long is better copied by `kept`.
        """
        ReceiveArea.keep(self.frame)

    def kept(self, view: memoryview) -> memoryview:
        """Return a view of the same bytes that stays valid: copied only if it has to be."""
        return ReceiveArea.owned(view)


class LargeResponse(dict[str, Any]):
    """A response that takes long to encode: a thread does it. Only awaitables may give one."""

    __slots__ = ()


class Handler(NamedTuple):
    """A registered function."""

    key: ApiKey
    function: Callable[..., Any]
    # Parses the frame itself and returns pieces; else it is given a decoded body.
    is_raw: bool
    # Calling it runs nothing yet: its frame has to outlive the call.
    is_coroutine: bool


class Registry:
    """API key -> handler. The process has one (below); tests make their own."""

    __slots__ = ("_handlers",)

    def __init__(self) -> None:
        self._handlers: dict[ApiKey, Handler] = {}

    def handles(self, key: ApiKey) -> Callable[[_Generic], _Generic]:
        """Register a function (broker, request, body) -> mapping or an awaitable of one."""
        return lambda function: self._register(key, function, is_raw=False)

    def handles_raw(self, key: ApiKey) -> Callable[[_Generic], _Generic]:
        """Register a function (broker, request) -> pieces, None, or an awaitable of them."""
        return lambda function: self._register(key, function, is_raw=True)

    def registered_keys(self) -> list[ApiKey]:
        """Return the keys that are served, ascending."""
        return sorted(self._handlers)

    def handlers(self) -> list[Handler]:
        """Return all handlers, by ascending key."""
        return [self._handlers[key] for key in sorted(self._handlers)]

    def _register(self, key: ApiKey, function: _Generic, *, is_raw: bool) -> _Generic:
        assert key not in self._handlers, f"{key.name} has two handlers"
        assert key in API_VERSIONS, f"{key.name} has no version range"
        self._handlers[key] = Handler(key, function, is_raw, inspect.iscoroutinefunction(function))
        return function


REGISTRY = Registry()
handles = REGISTRY.handles
handles_raw = REGISTRY.handles_raw
registered_keys = REGISTRY.registered_keys
