"""Cleanup of Spark's checkpoint after a run that ended before its first batch was planned.

If the disk is full, a plan's temporary file stays in `offsets`. Spark then refuses to start,
because without a batch the folder must be empty (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def clear_broken_start(checkpoint: Path) -> int:
    """Remove temporary plans from a checkpoint without batches; return their number."""
    offsets = checkpoint / "offsets"
    plans = list(offsets.iterdir()) if offsets.is_dir() else []
    # Other files are plans, or not Spark's.
    if not all(plan.name.startswith(".") and ".tmp" in plan.name for plan in plans):
        return 0
    for plan in plans:
        plan.unlink()
    return len(plans)
