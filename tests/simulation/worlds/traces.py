"""Traces of one schedule from several processes, which must not differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.worlds.world import World

# Set order depends on the hash seed, which differs between processes.
_HASH_SEEDS = ("1", "2")


def traces_of_processes(kind: type[World], seed: int) -> set[str]:
    program = (
        f"from {kind.__module__} import {kind.__name__} as World\n"
        f"world = World({seed}); world.run(); print(world.trace)"
    )
    return {
        subprocess.run(
            # Suppress warnings about loops that are abandoned with the process.
            [sys.executable, "-W", "ignore", "-c", program],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        for hash_seed in _HASH_SEEDS
    }
