"""The broker's table of handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS
from wirebroker.request.handlers import Cost, Registry

if TYPE_CHECKING:
    from wirebroker.config import Config

_Function = TypeVar("_Function", bound=Callable[..., Any])

REGISTRY = Registry()
handles = REGISTRY.handles
handles_raw = REGISTRY.handles_raw
# Keys that a broker serves and advertises only if this config is true.
OPTIONAL_KEYS: Final = dict.fromkeys(
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY), "wirebroker.client.metrics"
)


def enabled(config: Config) -> Registry:
    """Return the handlers that a broker with this configuration serves."""
    return REGISTRY.derived(enabled_keys(config), REGISTRY.handler)


def enabled_keys(config: Config) -> list[ApiKey]:
    """Return the keys of these handlers, ascending."""
    return [
        key
        for key in REGISTRY.registered_keys()
        if key not in OPTIONAL_KEYS or config.bool(OPTIONAL_KEYS[key])
    ]


def forwards(key: ApiKey, *, is_raw: bool = False) -> Callable[[_Function], _Function]:
    """Register the handler of a request that the active controller decides.

    Its permissions are declared with the controller's operation.
    """
    register = handles_raw if is_raw else handles
    permissions = DECLARED_OPERATIONS[key].permissions
    return register(key, permissions=permissions, cost=Cost.CONTROLLER, is_forwarded=True)
