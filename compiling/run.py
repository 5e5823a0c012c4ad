"""`make run`: starts the broker as compiled as it is by now, and has the rest made beside it.

    python -m compiling.run [--wait] FOLDER [arguments of `wirebroker`]

It also serves HTTP on loopback (/ready, /live), unless a file says what is served or the port is
taken.

FOLDER holds the compiled copy (tree.py). Is it that of the present sources, its broker is started;
if not, the plain one starts at once, and the copy is made at lowest priority for the next start.
With --wait the copy is made first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from compiling.tree import ROOT, State, make_tree, state_of
from compiling.wish import VARIABLE, what_is_missing

_LOG = "log"
# For a broker that is tried out; the port is the one at which scrapers expect a Kafka's metrics.
_HTTP = {
    "KAFKA_WIREBROKER_HTTP_LISTENERS": "127.0.0.1:9404",
    "KAFKA_WIREBROKER_HTTP_OPTIONAL": "true",
}


def main(folder: Path, arguments: list[str], *, wait: bool = False) -> None:
    """Become the broker; says on standard error which one, and why.

    Raises:
        SystemExit: Something compiled is waited for, and there is no compiler.
    """
    environment = dict(os.environ)
    missing = what_is_missing()
    if wait:
        _compile_now(folder, missing)
    if environment.get(VARIABLE) == "0":
        _say("plain Python, as WIREBROKER_COMPILE=0 says")
    elif (state := state_of(folder)) is State.COMPILED:
        _say(f"compiled ({folder.relative_to(ROOT)})")
        environment["PYTHONPATH"] = str(folder)
    elif state is State.FAILED:
        _say(f"plain Python; compiling is under way or has failed, see {folder / _LOG}")
    elif missing is not None:
        _say(f"plain Python; compiled it takes about half of the CPU, but {missing}")
    else:
        _say(
            "plain Python for now; it is compiled beside, at lowest priority, in a minute or two:"
            " the next `make run` takes that"
        )
        _compile_beside(folder)
    if not any(each.startswith("--config") for each in arguments):
        for name, value in _HTTP.items():
            environment.setdefault(name, value)
    # -P: the compiled copy comes before the folder that this is run from.
    os.execve(sys.executable, [sys.executable, "-P", "-m", "wirebroker", *arguments], environment)


def _compile_now(folder: Path, missing: str | None) -> None:
    if missing is not None:
        sys.exit(f"wirebroker's build: nothing can be compiled: {missing}")
    if state_of(folder) is not State.COMPILED:
        _say("compiling the hot path, a minute or two")
        make_tree(folder)


def _compile_beside(folder: Path) -> None:
    log = _log_of(folder)
    subprocess.Popen(
        ["nice", "-n", "19", sys.executable, "-m", "compiling.tree", str(folder)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # Ctrl-C ends the broker alone
    )


def _log_of(folder: Path) -> int:
    """Open what a failed build leaves its reasons in; the process keeps it until it is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / _LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _say(what: str) -> None:
    sys.stderr.write(f"wirebroker's build: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _parser.add_argument("--wait", action="store_true")
    _parser.add_argument("folder", type=Path, metavar="FOLDER")
    _parser.add_argument("arguments", nargs=argparse.REMAINDER)
    _options = _parser.parse_args()
    main(_options.folder.resolve(), _options.arguments, wait=_options.wait)
