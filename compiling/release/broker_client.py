"""Test an installed broker: start it, then send and read records with its own verbs.

    python compiling/release/broker_client.py [COMMAND]

COMMAND is by default `wirebroker` on PATH. Needs only that installation.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

_READY = "wirebroker ready on "
_PATIENCE_S = 300


class TrialError(Exception):
    """A wheel or its broker does not work; the message has the command and result."""


def check_produce_consume(command: str, folder: Path) -> None:
    """Start a broker in the folder, send two records, read them, stop it.

    Raises:
        TrialError: A step failed.
    """
    serve = [command, "serve", "--port", "0", "--data-dir", "data"]
    with subprocess.Popen(
        serve, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as broker:
        try:
            assert broker.stdout is not None, "stdout=PIPE was given"
            to = ["-b", _address(broker.stdout)]
            run([command, "produce", *to, "trial"], cwd=folder, input_text="one\ntwo\n")
            read = run([command, "consume", *to, "--from-beginning", "-n", "2", "trial"])
            if read != "one\ntwo\n":
                raise TrialError(f"sent one and two, read {read!r}")
        finally:
            broker.send_signal(signal.SIGTERM)
    if broker.returncode != 0:
        raise TrialError(f"the broker ended with status {broker.returncode} after SIGTERM")


def _address(lines: IO[str]) -> str:
    lines_read: list[str] = []
    for line in lines:
        if line.startswith(_READY):
            return line.removeprefix(_READY).split()[0]
        lines_read.append(line)
    raise TrialError(f"the broker did not become ready: {''.join(lines_read)}")


def run(command: list[str], *, cwd: Path | str | None = None, input_text: str = "") -> str:
    """Run a command and return its output.

    Raises:
        TrialError: The command failed.
    """
    # The command must not import from this checkout.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        command,
        cwd=cwd,
        input=input_text,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    if result.returncode != 0:
        raise TrialError(
            f"{' '.join(command)} ended with status {result.returncode}: {result.stderr[-2000:]}"
        )
    return result.stdout


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _parser.add_argument("command", nargs="?", default="wirebroker", metavar="COMMAND")
    _command = _parser.parse_args().command
    with tempfile.TemporaryDirectory() as _name:
        try:
            check_produce_consume(
                str(Path(shutil.which(_command) or _command).absolute()), Path(_name)
            )
        except TrialError as error:
            sys.exit(str(error))
