"""Python subprocesses with the same interpreter and sources, in their own session."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import wirebroker

if TYPE_CHECKING:
    from collections.abc import Mapping


async def start_module(
    name: str,
    *arguments: str,
    longest_line: int = 1 << 16,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> asyncio.subprocess.Process:
    """Start a module of the project with pipes for its standard input and output.

    `longest_line` limits lines of its output, in bytes. `environment` has additional variables.

    Raises:
        OSError: The process cannot be started.
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
        env={**os.environ, **environment, "PYTHONPATH": search_path},
        limit=longest_line,
        # The terminal's SIGINT reaches only the parent.
        start_new_session=True,
    )
