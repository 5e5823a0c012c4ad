"""Over which times quotas are measured. The quotas themselves are metadata."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import integer

_OF_CLIENTS: Final = "quotas of bytes, request time and connections"
_OF_CONTROLLER: Final = "quotas of partitions that are created and deleted"

ROWS: Final = (
    integer(
        "quota.window.num",
        11,
        f"Samples over which {_OF_CLIENTS} are measured; the newest is still filling.",
        1,
    ),
    integer(
        "quota.window.size.seconds",
        1,
        f"How long a sample of {_OF_CLIENTS} is; request time is throttled by as long at most.",
        1,
    ),
    integer(
        "controller.quota.window.num",
        11,
        f"Samples whose {_OF_CONTROLLER} may be used at once.",
        1,
    ),
    integer(
        "controller.quota.window.size.seconds",
        1,
        f"How long a sample of {_OF_CONTROLLER} is.",
        1,
    ),
)
