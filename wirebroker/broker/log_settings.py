"""Configuration of the broker's log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.logs import configure_logging

if TYPE_CHECKING:
    from wirebroker.config import Config

# Shorter secrets may be part of any word, so they are shown.
LEAST_HIDDEN: Final = 6


def configure_as(config: Config, *, process: str = "") -> None:
    """Configure logging; hide secrets."""
    configure_logging(
        level=config.str("wirebroker.log.level"),
        log_format="json" if config.str("wirebroker.log.format") == "json" else "text",
        process=process,
        redact=partial(config.redacted, at_least=LEAST_HIDDEN),
    )
