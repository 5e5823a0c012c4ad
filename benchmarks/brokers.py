"""The brokers that are measured: of a checkout, and Apache Kafka."""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.brokers import ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Nothing of these brokers' own housekeeping falls into a run.
SETTINGS = {"log.retention.check.interval.ms": "3600000"}


class Checkout(Wirebroker):
    """The broker of a checkout, on this interpreter and its packages.

    Args:
        directory: For data and logs.
        checkout: Its root; None is this one.
        settings: Configs beyond the common profile.
    """

    def __init__(
        self,
        directory: Path,
        checkout: Path | None = None,
        settings: Mapping[str, str] = SETTINGS,
    ) -> None:
        super().__init__(directory, settings)
        self._checkout = checkout.absolute() if checkout else None

    def _command(self) -> list[str]:
        # Bytecode is kept, as pip does: else each start would compile what was edited since.
        command = ["env", "-u", "PYTHONDONTWRITEBYTECODE"]
        if self._checkout is not None:
            # The working directory stands first in the path that `-m` looks through.
            command += ["-C", str(self._checkout)]
        return [*command, *super()._command()]


def version(checkout: Path | None) -> str:
    """Say what a checkout's broker is, compiled or not, and on which Python it runs."""
    command = [sys.executable, "-m", "wirebroker", "--version"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()} on CPython {platform.python_version()}"


@contextlib.contextmanager
def both(ours: Path | None, against: Path | None) -> Iterator[tuple[Broker, Broker]]:
    """Run the broker of `ours` and that of `against` side by side; None there: Apache Kafka."""
    with tempfile.TemporaryDirectory(prefix="wirebroker-bench-") as directory:
        first = Checkout(Path(directory) / "ours", ours)
        second: Broker = (
            ApacheKafka(Path(directory) / "theirs", SETTINGS)
            if against is None
            else Checkout(Path(directory) / "theirs", against)
        )
        try:
            first.start()
            second.start()
            yield first, second
        finally:
            first.stop()
            second.stop()
