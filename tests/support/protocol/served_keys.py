"""The API keys that a broker serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey


def served_keys() -> list[ApiKey]:
    load_handlers()
    return REGISTRY.registered_keys()
