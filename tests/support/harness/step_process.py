"""Run a program to its end, and end it when this process is ended.

The program runs in its own session, which gets SIGINT when this process is ended (SIGTERM, SIGHUP,
Ctrl-C): pytest then stops the brokers of its fixtures, which SIGTERM would leave running. Remaining
processes are killed later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

# Enough to stop several brokers and JVMs on a busy machine.
PATIENCE_S: Final = 60.0
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit (128 and the signal's number) for SIGTERM and SIGHUP in the block.

    Ctrl-C raises KeyboardInterrupt, even where a shell's `&` has it ignored: child processes would
    inherit that. SIGHUP stays ignored under nohup.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ending = [
        signal_number
        for signal_number in _ENDING
        if signal.getsignal(signal_number) is not signal.SIG_IGN
    ]
    earlier = {signal_number: signal.signal(signal_number, leave) for signal_number in ending}
    earlier[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def run_step(
    command: Sequence[str],
    folder: Path,
    output: IO[str],
    *,
    patience_s: float = PATIENCE_S,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a program in a folder and return its status.

    Args:
        command: The program and its arguments.
        folder: The working directory.
        output: The file for its output.
        patience_s: Timeout for its end after this process is ended.
        environment: Additional environment variables.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            return process.wait()
        except BaseException:
            _end(process, patience_s)
            raise


def _end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    try:
        _tell(process, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    finally:  # also after another signal
        _tell(process, signal.SIGKILL)


def _tell(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
