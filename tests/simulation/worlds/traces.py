"""The traces of one schedule in several processes: whatever differs between them must not show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.worlds.world import World

# Sets are ordered by hashes, which differ from process to process.
_HASH_SEEDS = ("1", "2", "3")


def traces_of_processes(kind: type[World], seed: int) -> set[str]:
    """Return the traces that a schedule has in processes of their own."""
    program = (
        f"from {kind.__module__} import {kind.__name__} as World\n"
        f"world = World({seed}); world.run(); print(world.trace)"
    )
    return {
        subprocess.run(
            # Loops that are abandoned with the process are not worth a warning.
            [sys.executable, "-W", "ignore", "-c", program],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        for hash_seed in _HASH_SEEDS
    }
