"""What a build compiles: WIREBROKER_COMPILE says it, else what the machine has.

| WIREBROKER_COMPILE | compiled |
| --- | --- |
| not set | everything, where there is a C compiler; what fails is left out, in one sentence |
| 1 | everything; what fails ends the build |
| c | the C that is written by hand, seconds; what fails ends the build |
| 0 | nothing |

An editable install is never compiled: a shared object would hide what is edited beside it.
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
# How long compiling takes on two cores.
TAKES = "about two minutes"
_VALUES = ("", "0", "1", "c")


class Wish(NamedTuple):
    """What is compiled.

    Attributes:
        c: The sources in C.
        modules: The modules of modules.txt.
        must: Whether a failure ends the build.
    """

    c: bool
    modules: bool
    must: bool


def wish() -> Wish:
    """Return what this build compiles.

    Raises:
        SystemExit: The variable has another value than those above, or asks for a compiler that
            isn't there.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in _VALUES:
        sys.exit(f"{VARIABLE}={value}: it is 1 (everything), c (the C sources) or 0 (nothing)")
    if value == "0":
        return Wish(c=False, modules=False, must=False)
    missing = what_is_missing()
    if missing is not None:
        if value:
            sys.exit(f"{VARIABLE}={value} needs a C compiler: {missing}")
        return Wish(c=False, modules=False, must=False)
    return Wish(c=True, modules=value != "c", must=bool(value))


def announce(wanted: Wish) -> None:
    """Print what this build compiles, how long that takes and how to skip it.

    pip shows nothing of a build that succeeds, so the line goes to the terminal as well.
    """
    if not wanted.modules:
        return
    line = f"wirebroker: compiling takes {TAKES}; {VARIABLE}=0 skips it (twice the CPU per request)"
    sys.stderr.write(f"{line}\n")
    try:
        with Path("/dev/tty").open("w", encoding="utf-8") as terminal:
            terminal.write(f"\n{line}\n")
    except OSError:
        return  # no terminal: a container, a service


def what_is_missing() -> str | None:
    """Return what keeps this machine from compiling for this Python, with the way out, or None."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(command) is None:
        return f"{command} is not installed (Debian: apt install gcc python3-dev)"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are not installed (Debian: apt install python3-dev)"
    return None
