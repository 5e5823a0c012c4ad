"""Jobs in a process of their own, and what tests do to them: kills of drivers, workers, brokers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_it import session

if TYPE_CHECKING:
    from collections.abc import Iterator

_END_S = 60.0


def told(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return what a job has told so far in its file of metrics."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [each for each in found if each["kind"] == kind]


def children_of(process_id: int) -> Iterator[int]:
    """Return the processes that a process has started and that still run."""
    for path in Path(f"/proc/{process_id}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, path.read_text(encoding="utf-8").split())


def kill_workers(java: int) -> int:
    """Kill the Python workers of a Spark, a process of Java; return how many there were."""
    workers = [each for daemon in children_of(java) for each in children_of(daemon)]
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    return len(workers)


class Driver:
    """A job in a process of its own, with a small local Spark."""

    def __init__(self, kind: str, job: Path) -> None:
        self._log = (job.parent / "driver.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wirebroker.pipelines", kind, str(job)],
            env={**os.environ, **session.environment()},
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def status(self) -> int | None:
        """What it ended with; None: it runs."""
        return self._process.poll()

    def java(self) -> int | None:
        """Return the number of its Spark's process; None: it isn't there yet."""
        return next(children_of(self._process.pid), None)

    def kill(self) -> None:
        """End it as a crash does; its Spark ends with it."""
        java = self.java()
        self._process.kill()
        self._process.wait(_END_S)
        # Spark's process ends when its standard input does: the next driver need not wait for it.
        assert java is None or java != os.getpid()
        self._log.close()

    def terminate(self) -> int:
        """Ask it to end behind its batch; return its status."""
        self._process.terminate()
        return self.wait()

    def wait(self, limit_s: float = 600.0) -> int:
        """Wait for its end; return its status."""
        try:
            return self._process.wait(limit_s)
        finally:
            self._log.close()


def spark_table(folder: Path) -> dict[str, str]:
    """Return a job's table of Spark's settings: two cores, the connector's jars."""
    return {"spark.master": "local[2]", **session.settings_for(folder)}
