"""Configs of the periods over which quotas are measured. The quotas themselves are metadata."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import integer

_OF_CLIENTS: Final = "quotas for bytes, request time and connections"
_OF_CONTROLLER: Final = "quotas for creating and deleting partitions"

ROWS: Final = (
    integer(
        "quota.window.num",
        11,
        f"Number of samples over which {_OF_CLIENTS} are measured, including the current one.",
        1,
    ),
    integer(
        "quota.window.size.seconds",
        1,
        f"Length of a sample of {_OF_CLIENTS}; also the maximum throttle time for request time.",
        1,
    ),
    integer(
        "controller.quota.window.num",
        11,
        f"Number of samples whose {_OF_CONTROLLER} may be used at once.",
        1,
    ),
    integer(
        "controller.quota.window.size.seconds",
        1,
        f"Length of a sample of {_OF_CONTROLLER}.",
        1,
    ),
)
