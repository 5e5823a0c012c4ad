"""The API keys that a broker serves."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from wirebroker.api.modules import API_MODULES
from wirebroker.api.registry import REGISTRY

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey


def served_keys() -> list[ApiKey]:
    for name in API_MODULES:
        importlib.import_module(f"wirebroker.api.{name}")
    return REGISTRY.registered_keys()
