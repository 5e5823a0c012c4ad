"""What a controller reports to its process after it is open."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER = logging.getLogger(__name__)


def _ignore_disk_failure(path: str, error: OSError) -> None:
    """Ignore the failure: the replica has logged it."""


def _ignore_voters() -> None:
    """Ignore other voters."""


class ControllerReports(NamedTuple):
    """Functions that must not call the controller.

    Attributes:
        on_disk_failure: Called with the log's path when its disk has failed.
        on_unusable: Called with the reason when committed records cannot be applied.
        on_voters: Called when other voters count.
    """

    on_disk_failure: Callable[[str, OSError], None] = _ignore_disk_failure
    on_unusable: Callable[[str], None] = LOGGER.error
    on_voters: Callable[[], None] = _ignore_voters
