"""Keeps the machine's cores from sleeping while something is measured.

A core of a virtual machine that goes idle may leave for the host at once; each wakeup then costs
some 10 us of kernel CPU, more than a broker takes for a small request. Whoever holds
/dev/cpu_dma_latency open with a bound of 0 us keeps idle cores polling inside the machine instead
(Linux PM QoS; tuned's profile `latency-performance` does this as well). A polling core is idle in
/proc/stat, so that machine.Witness does not take it for somebody's work.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

DEVICE = Path("/dev/cpu_dma_latency")
KEPT_AWAKE = "kept awake"
MAY_SLEEP = "may sleep"


@contextlib.contextmanager
def awake_cores(*, wanted: bool = True, device: Path = DEVICE) -> Generator[str]:
    """Keep the cores awake within the block, if it can be done; yield KEPT_AWAKE or MAY_SLEEP.

    Args:
        wanted: False: let them sleep.
        device: Where the kernel takes the bound; only root may write there.
    """
    try:
        descriptor = os.open(device, os.O_WRONLY) if wanted else None
    except OSError:  # not Linux, not root, or a container without the device
        descriptor = None
    if descriptor is None:
        yield MAY_SLEEP
        return
    try:
        os.write(descriptor, struct.pack("=i", 0))
        yield KEPT_AWAKE
    finally:
        os.close(descriptor)  # the kernel forgets the bound


def check_same(path: Path, before: str, cores: str) -> None:
    """Raise ValueError if a file's results were not taken with cores like these.

    They are not for one table.
    """
    if before != cores:
        raise ValueError(f"{path} was taken with cores: {before}, this run has cores: {cores}")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add --let-cores-sleep."""
    parser.add_argument(
        "--let-cores-sleep", action="store_true", help="don't keep idle cores polling (awake_cores)"
    )
