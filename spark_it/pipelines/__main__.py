"""Entry point of `python -m wirebroker.pipelines NAME`."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> int:
    """Run the command line and return the exit status; 2 if a package is missing."""
    try:
        command_line = import_module("wirebroker.pipelines.commands.command_line")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("wirebroker"):
            raise
        text = f"a pipeline needs {error.name}: pip install 'wirebroker[spark]'\n"
        sys.stderr.write(f"wirebroker: {text}")
        return 2
    return int(command_line.main())


if __name__ == "__main__":
    sys.exit(main())
