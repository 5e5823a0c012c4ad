"""The handlers of a controller listener; each module of this folder registers its own."""

from __future__ import annotations

from wirebroker.request.handlers import Registry

CONTROLLER_REGISTRY = Registry()
handles = CONTROLLER_REGISTRY.handles
handles_raw = CONTROLLER_REGISTRY.handles_raw
