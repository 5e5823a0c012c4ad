"""The broker's table of handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS
from wirebroker.request.handlers import Cost, Registry

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey

_Function = TypeVar("_Function", bound=Callable[..., Any])

REGISTRY = Registry()
handles = REGISTRY.handles
handles_raw = REGISTRY.handles_raw
registered_keys = REGISTRY.registered_keys


def forwards(key: ApiKey, *, is_raw: bool = False) -> Callable[[_Function], _Function]:
    """Register the handler of a request that the active controller decides.

    Its permissions are declared with the controller's operation.
    """
    register = handles_raw if is_raw else handles
    permissions = DECLARED_OPERATIONS[key].permissions
    return register(key, permissions=permissions, cost=Cost.CONTROLLER, is_forwarded=True)
