"""The API keys that a broker serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import enabled_keys
from wirebroker.config import Config

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey


def served_keys(**settings: str) -> list[ApiKey]:
    """Return the keys of a broker with these settings, in Python's form."""
    load_handlers()
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    return enabled_keys(Config({"log.dirs": "data", **changes}))
