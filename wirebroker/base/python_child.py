"""How a process of ours starts another: the same Python, the same sources, a signal of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import wirebroker


async def start_module(
    name: str, *arguments: str, longest_line: int = 1 << 16
) -> asyncio.subprocess.Process:
    """Start a module of ours; its standard input and output are pipes.

    Args:
        name: Of the module, `wirebroker.…`.
        arguments: For people who look at processes.
        longest_line: Of its output, in bytes.

    Raises:
        OSError: No process can be had.
    """
    root = str(Path(wirebroker.__file__).parent.parent)
    search_path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        name,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search_path},
        limit=longest_line,
        # A SIGINT from the terminal is for whoever starts it, and ends it.
        start_new_session=True,
    )
