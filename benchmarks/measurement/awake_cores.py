"""Keeping the machine's cores from sleeping during measurements.

A wakeup of a virtual machine's idle core may cost 10 us of kernel CPU, more than a small request.
While /dev/cpu_dma_latency is open with a bound of 0 us, idle cores poll inside the machine (Linux
PM QoS). /proc/stat counts polling as idle.
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
def awake_cores(*, enabled: bool = True, device: Path = DEVICE) -> Generator[str]:
    """Keep the cores awake if wanted and possible; yield KEPT_AWAKE or MAY_SLEEP."""
    try:
        descriptor = os.open(device, os.O_WRONLY) if enabled else None
    except OSError:  # not Linux, not root, or a container without the device
        descriptor = None
    if descriptor is None:
        yield MAY_SLEEP
        return
    try:
        os.write(descriptor, struct.pack("=i", 0))
        yield KEPT_AWAKE
    finally:
        os.close(descriptor)  # the kernel removes the bound


def check_same(path: Path, before: str, cores: str) -> None:
    """Raise ValueError if a file's results were measured with cores in another state."""
    if before != cores:
        raise ValueError(f"{path} was taken with cores: {before}, this run has cores: {cores}")


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--let-cores-sleep", action="store_true", help="don't keep idle cores polling (awake_cores)"
    )
