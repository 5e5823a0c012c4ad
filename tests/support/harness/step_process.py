"""A program that is run to its end, unless whoever runs it is ended: then it ends before.

It is the first of a session of its own. Who ends us (SIGTERM, SIGHUP, Ctrl-C) has the whole session
told what Ctrl-C tells it at a terminal, since that is what Python's programs clean up at: pytest
stops the brokers of its fixtures, while SIGTERM would leave them. What is left later is killed.
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

# Some brokers and JVMs that stop one after the other on a busy machine.
PATIENCE_S: Final = 60.0
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have signals that end a process raise SystemExit (128 and the signal's number) meanwhile.

    Ctrl-C's raises KeyboardInterrupt, also where a shell's `&` has it ignored: programs that are
    run inherit that, and could not be told. SIGHUP that is ignored (nohup) stays so.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ending = [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]
    earlier = {each: signal.signal(each, leave) for each in ending}
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
    """Run a program in a folder; return its status.

    Args:
        command: The program and its arguments.
        folder: Where it works.
        output: Where what it prints goes.
        patience_s: How long it may take to end, if we are ended before it is.
        environment: Variables added to this process's environment.
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
    finally:  # also if we are told once more
        _tell(process, signal.SIGKILL)


def _tell(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
