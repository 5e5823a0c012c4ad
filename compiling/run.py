"""`make run`: start the compiled broker if it is current, or else the pure Python one.

    python -m compiling.run FOLDER [arguments of `wirebroker`]

FOLDER holds the compiled copy of `make compiled`. The broker also serves HTTP on loopback, unless a
configuration file is given or the port is in use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from compiling.build_choice import TAKES, VARIABLE, what_is_missing
from compiling.tree import ROOT, is_current

# The usual port for Kafka metrics.
_HTTP = {
    "KAFKA_WIREBROKER_HTTP_LISTENERS": "127.0.0.1:9404",
    "KAFKA_WIREBROKER_HTTP_OPTIONAL": "true",
}


def main(folder: Path, arguments: list[str]) -> None:
    """Replace this process with the broker; print which build it is."""
    environment = dict(os.environ)
    if environment.get(VARIABLE) != "0" and is_current(folder):
        _print(f"compiled ({folder.relative_to(ROOT)})")
        environment["PYTHONPATH"] = str(folder)
    elif (missing := what_is_missing()) is not None:
        _print(f"plain Python; the compiled broker uses half the CPU, but {missing}")
    else:
        _print(f"plain Python; `make compiled` builds one that uses half the CPU, in {TAKES}")
    if not any(argument.startswith("--config") for argument in arguments):
        for name, value in _HTTP.items():
            environment.setdefault(name, value)
    # -P: the compiled copy takes precedence over the current directory.
    os.execve(sys.executable, [sys.executable, "-P", "-m", "wirebroker", *arguments], environment)


def _print(line: str) -> None:
    sys.stderr.write(f"wirebroker's build: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
