"""The table of handlers by API key, with their permissions and costs.

    @handles(ApiKey.DELETE_GROUPS, permissions=(DELETE_GROUP,), cost=Cost.LOG)
    def delete_groups(broker, request, body): ...          # decoded body in, mapping out

    @handles_raw(ApiKey.PRODUCE, permissions=(WRITE_TOPIC,), cost=Cost.SLICES)
    def produce(broker, request): ...                      # parses request.frame, returns pieces

Any of them may return an awaitable. ApiVersions advertises the registered keys, with the versions
of `codecs/api_keys.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.permissions import Permission  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Cost(Enum):
    """The work of a request besides the transfer of its bytes."""

    BOUNDED = "served from memory immediately, regardless of the cluster's size"
    SLICES = "grows with the request or the stored state; runs in slices on the event loop"
    READS = "the same, but read-only: canceled when its client disconnects"
    LOG = "waits for a coordinator's append"
    THREADS = "reads or writes the disk in a thread"
    CONTROLLER = "waits for the controller (a controller mutation's quota, KIP-599)"
    WAITS = "waits for other clients, or for records"


class Handler(NamedTuple):
    """A registered function."""

    key: ApiKey
    function: Callable[..., Any]
    # Parses the frame; others receive a decoded body.
    is_raw: bool
    # A call runs nothing yet, so the frame must outlive it.
    is_coroutine: bool
    # Checked in or before the function; if empty, any client may send the request.
    permissions: tuple[Permission, ...]
    cost: Cost
    is_forwarded: bool
    # (broker, request) -> the bytes of the response to a request that repeats an earlier one, or
    # None: the request is decoded and served by `function`.
    repeat: Callable[..., bytes | None] | None = None


class Registry:
    """Handlers by API key. A broker uses the one of api/registry.py.

    Some are loaded with their first request: `add_late` names the key, `handler` loads.
    """

    __slots__ = ("_handlers", "_keys", "_late")

    def __init__(self) -> None:
        self._handlers: dict[ApiKey, Handler] = {}
        self._late: dict[ApiKey, Callable[[], Handler]] = {}
        # Of both; the loading of a handler in a thread does not change it.
        self._keys: set[ApiKey] = set()

    def handles(
        self,
        key: ApiKey,
        *,
        permissions: Sequence[Permission] = (),
        cost: Cost = Cost.BOUNDED,
        is_forwarded: bool = False,
        repeat: Callable[..., bytes | None] | None = None,
    ) -> Callable[[_Function], _Function]:
        """Register a function (broker, request, body) -> mapping or awaitable.

        `is_forwarded`: the active controller decides the request. `repeat`: see Handler.
        """
        return self._registering(key, False, tuple(permissions), cost, is_forwarded, repeat=repeat)

    def handles_raw(
        self,
        key: ApiKey,
        *,
        permissions: Sequence[Permission] = (),
        cost: Cost = Cost.BOUNDED,
        is_forwarded: bool = False,
    ) -> Callable[[_Function], _Function]:
        """Register a function (broker, request) -> pieces, None, or an awaitable."""
        return self._registering(key, True, tuple(permissions), cost, is_forwarded)

    def has(self, key: ApiKey) -> bool:
        """Return whether a key has a handler."""
        return key in self._keys

    def add(self, handler: Handler) -> None:
        """Register a handler."""
        assert handler.key not in self._handlers, f"{handler.key.name} has two handlers"
        self._keys.add(handler.key)
        self._handlers[handler.key] = handler

    def add_late(self, key: ApiKey, load: Callable[[], Handler]) -> None:
        """Register a handler that `load` returns when it is needed."""
        assert key not in self._keys, f"{key.name} has two handlers"
        self._keys.add(key)
        self._late[key] = load

    def registered_keys(self) -> list[ApiKey]:
        """Return the keys, ascending."""
        return sorted(self._keys)

    def derived(self, keys: Iterable[ApiKey], handler_of: Callable[[ApiKey], Handler]) -> Registry:
        """Return the handlers that `handler_of` makes of these keys; late ones stay late."""
        derived = Registry()
        for key in keys:
            if key in self._late:
                derived.add_late(key, partial(handler_of, key))
            else:
                derived.add(handler_of(key))
        return derived

    def is_late(self, key: ApiKey) -> bool:
        """Return whether a key's handler is loaded when it is needed."""
        return key in self._late

    def handler(self, key: ApiKey) -> Handler:
        """Return a handler, loading it if necessary.

        Raises:
            KeyError: The key is not registered.
        """
        # Also if it is registered: a thread may be importing the rest of its module.
        if key in self._late:
            self._handlers[key] = self._late[key]()
        return self._handlers[key]

    def loaded(self, key: ApiKey) -> Handler:
        """Return a handler whose module is imported.

        Raises:
            KeyError: It is not.
        """
        return self._handlers[key]

    def handlers(self) -> list[Handler]:
        """Return all handlers, by ascending key; this loads the late ones."""
        return [self.handler(key) for key in self.registered_keys()]

    def _registering(
        self,
        key: ApiKey,
        is_raw: bool,
        permissions: tuple[Permission, ...],
        cost: Cost,
        is_forwarded: bool,
        *,
        repeat: Callable[..., bytes | None] | None = None,
    ) -> Callable[[_Function], _Function]:
        assert key in SPOKEN_VERSIONS, f"{key.name} has no version range"

        def register(function: _Function) -> _Function:
            is_coroutine = inspect.iscoroutinefunction(function)
            self.add(
                Handler(
                    key, function, is_raw, is_coroutine, permissions, cost, is_forwarded, repeat
                )
            )
            return function

        return register
