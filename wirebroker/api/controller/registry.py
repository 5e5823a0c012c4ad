"""The handlers of a controller listener; modules of this folder register theirs."""

from __future__ import annotations

from wirebroker.request.handlers import Registry

CONTROLLER_REGISTRY = Registry()
handles = CONTROLLER_REGISTRY.handles
handles_raw = CONTROLLER_REGISTRY.handles_raw
