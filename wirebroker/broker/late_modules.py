"""Modules that a broker's start does not need, imported in a thread a moment later.

A request that needs one earlier imports it.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.api.modules import LATE_MODULES as API_MODULES
from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

# The first clients of a broker come first.
_DELAY_S: Final = 1.0
LATE_MODULES: Final = (
    "wirebroker.coordination.group_effects",
    "wirebroker.coordinator.groups.consumer.kind",
    "wirebroker.coordinator.groups.streams.kind",
    "wirebroker.coordinator.groups.share.kind",
    "wirebroker.coordinator.share_state.upkeep",
    "wirebroker.broker.share_opening",
    *(f"wirebroker.api.{name}" for name in API_MODULES),
)


async def import_late(modules: Iterable[str]) -> None:
    """Import modules one by one, so that the event loop is not held."""
    await pause(_DELAY_S)
    for module in modules:
        try:
            await in_thread(Work.IMPORTS, importlib.import_module, module)
        except Exception:  # a module may raise anything; others follow
            logger.exception("cannot import %s: requests that need it will fail", module)
