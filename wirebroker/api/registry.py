"""The broker's table of handlers; modules of this folder register when imported."""

from __future__ import annotations

from wirebroker.request.handlers import Registry

REGISTRY = Registry()
handles = REGISTRY.handles
handles_raw = REGISTRY.handles_raw
forwarded = REGISTRY.forwarded
registered_keys = REGISTRY.registered_keys
