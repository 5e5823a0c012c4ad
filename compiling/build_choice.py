"""The choice of what a build compiles, from WIREBROKER_COMPILE or the machine.

1 compiles everything, c only the hand-written C; a failure aborts the build. 0 compiles nothing. By
default everything is compiled if there is a C compiler, and failures are only reported.

Editable installs are never compiled: a shared object would hide edits of the source.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

VARIABLE = "WIREBROKER_COMPILE"
# On two cores.
TAKES = "about two minutes"
_VALUES = ("", "0", "1", "c")


class BuildChoice(NamedTuple):
    """The parts to compile; `must`: a failure aborts the build."""

    c: bool
    modules: bool
    must: bool


def wish() -> BuildChoice:
    """Return what this build compiles.

    Raises:
        SystemExit: The variable is invalid, or requires a missing compiler.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in _VALUES:
        sys.exit(f"{VARIABLE}={value}: use 1 (everything), c (the C sources) or 0 (nothing)")
    if value == "0":
        return BuildChoice(c=False, modules=False, must=False)
    missing = what_is_missing()
    if missing is not None:
        if value:
            sys.exit(f"{VARIABLE}={value} needs a C compiler: {missing}")
        return BuildChoice(c=False, modules=False, must=False)
    return BuildChoice(c=True, modules=value != "c", must=bool(value))


def announce(request: BuildChoice) -> None:
    """Print how long compiling takes and how to skip it.

    pip hides the output of a successful build, so the line is also written to the terminal.
    """
    if not request.modules:
        return
    line = f"wirebroker: compiling takes {TAKES}; {VARIABLE}=0 skips it (twice the CPU per request)"
    sys.stderr.write(f"{line}\n")
    try:
        with Path("/dev/tty").open("w", encoding="utf-8") as terminal:
            terminal.write(f"\n{line}\n")
    except OSError:
        return  # no terminal, as in a container or a service


def what_is_missing() -> str | None:
    """Return why this machine cannot compile, with a fix, or None."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(command) is None:
        return f"{command} is not installed (Debian: apt install gcc python3-dev)"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are not installed (Debian: apt install python3-dev)"
    return None
