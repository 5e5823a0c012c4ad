"""Clear Spark's checkpoint after a run that ended before its first batch was planned.

Spark writes a batch's plan to a temporary file in `offsets` and renames it. If the disk is full,
the temporary file stays, and Spark then refuses each later start: the folder of a query without a
batch must be empty (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def clear_broken_start(checkpoint: Path) -> int:
    """Remove temporary plans if no batch was planned; return how many files were removed.

    Args:
        checkpoint: The folder of Spark's checkpoint.
    """
    offsets = checkpoint / "offsets"
    found = list(offsets.iterdir()) if offsets.is_dir() else []
    # A file with another name is the plan of a batch, or Spark did not write it.
    if not all(each.name.startswith(".") and ".tmp" in each.name for each in found):
        return 0
    for each in found:
        each.unlink()
    return len(found)
