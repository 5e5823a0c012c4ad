"""Jobs in their own processes, and kills of their drivers, workers and brokers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_it.tools import session
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

TIMES = 10
WAIT_S = 300.0
SCRIPT = "script"
FAULTS = ("broker", "driver", "workers", "terminate")
_END_S = 60.0


def told(folder: Path, kind: str) -> list[dict[str, Any]]:
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    metrics = [json.loads(line) for line in lines if line.endswith("}")]
    return [metric for metric in metrics if metric["kind"] == kind]


def children_of(process_id: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended
        for path in Path(f"/proc/{process_id}/task").glob("*/children"):
            yield from map(int, path.read_text(encoding="utf-8").split())


def kill_all(processes: list[int]) -> int:
    for process_id in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)
    return len(processes)


def kill_workers(java: int) -> int:
    """Kill the Python workers of Spark's Java process; return their number."""
    return kill_all(
        [process_id for daemon in children_of(java) for process_id in children_of(daemon)]
    )


def plan_of(seed: int, faults: tuple[str, ...], times: int = TIMES) -> list[str]:
    """Return evenly distributed faults in an order that the seed determines."""
    plan = [faults[number % len(faults)] for number in range(times)]
    random.Random(seed).shuffle(plan)
    return plan


class Driver:
    """A pipeline verb, or a SCRIPT, in its own process with a small local Spark.

    Its output is in `driver.log`. `settings` are Spark's, for verbs that take none.
    """

    def __init__(
        self, folder: Path, *arguments: str, settings: dict[str, str] | None = None
    ) -> None:
        self._log = (folder / "driver.log").open("ab")
        spark_options = [
            part for setting in (settings or {}).items() for part in ("--conf", "=".join(setting))
        ]
        submit = {"PYSPARK_SUBMIT_ARGS": " ".join([*map(_quoted, spark_options), "pyspark-shell"])}
        is_script = arguments[0] == SCRIPT
        words = arguments[1:] if is_script else ("-m", "wirebroker.pipelines", *arguments)
        self._process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **session.environment(), **(submit if spark_options else {})},
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def java(self) -> int | None:
        """Return the process id of its Spark, or None."""
        return next(children_of(self._process.pid), None)

    def kill(self) -> None:
        java = self.java()
        self._process.kill()
        self._process.wait(_END_S)
        # Spark's process ends with its standard input.
        assert java is None or java != os.getpid()
        self._log.close()

    def terminate(self) -> int:
        """Request its end; return its status."""
        self._process.terminate()
        return self.wait()

    def wait(self, limit_s: float = 600.0) -> int:
        try:
            return self._process.wait(limit_s)
        finally:
            self._log.close()


class FaultyRun:
    """Runs of a job, with faults that the seed determines."""

    def __init__(self, kind: str, job: Path, broker: Broker, seed: int, times: int = TIMES) -> None:
        self._kind = kind
        self._job = job
        self._broker = broker
        self._plan = plan_of(seed, FAULTS, times)
        self._driver = self._new_driver()

    def run(self) -> None:
        """Cause each fault after some progress, then let the job end."""
        done = 0
        for fault in self._plan:
            self._get_on()
            if self._driver.status is not None:
                break
            self._do(fault)
            done += 1
        assert self._driver.wait(WAIT_S * 4) == 0
        sys.stdout.write(f"{self._kind}: {done} kills, {self._batches()} batches told\n")
        times = len(self._plan)
        assert done == times, f"the job was done behind {done} of {times} faults: give it more"

    def _new_driver(self) -> Driver:
        return Driver(self._job.parent, self._kind, str(self._job))

    def _do(self, fault: str) -> None:
        if fault == "broker":
            self._broker.kill9()
            self._broker.start()
        elif fault == "workers":
            java = self._driver.java()
            assert java is not None
            kill_workers(java)
        elif fault == "driver":
            self._driver.kill()
            self._driver = self._new_driver()
        else:
            assert fault == "terminate"
            assert self._driver.terminate() == 0
            self._driver = self._new_driver()

    def _batches(self) -> int:
        return len(told(self._job.parent, "batch"))

    def _get_on(self) -> None:
        before = self._batches()
        eventually(
            lambda: self._batches() > before or self._driver.status is not None, timeout_s=WAIT_S
        )


def spark_table(folder: Path) -> dict[str, str]:
    """Return Spark's settings for a job."""
    return {"spark.master": "local[2]", **session.settings_for(folder)}


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text
