"""Run the long tests (`make test-nightly`), one step at a time.

    python -m tests.nightly                    tonight's steps that haven't passed on these sources
    python -m tests.nightly --all              every step that hasn't
    python -m tests.nightly crashes churn      these, passed or not
    python -m tests.nightly --list             the steps, and about how long each takes

Most steps run each night, some every few nights: a night takes at most five hours on
two idle cores. Each step prints a summary; its full output goes to .venv/nightly/STEP.txt. An
interrupted run (SIGTERM, Ctrl-C) ends the current step and its processes, and repeats that step in
the next run. A table at the end shows the last result of each step for these sources; the exit
status is 0 if all of them passed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.nightly.steps import STEPS, due_steps
from tests.support.harness.project_files import ROOT
from tests.support.harness.step_process import ended_by_signals, run_step
from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from tests.nightly.step import Step

RESULTS = ROOT / ".venv" / "nightly"
# Patterns of summary lines.
_GAVE = re.compile(
    r"schedules,|points: |: \d+ records,|\d+ kills|\d+ faults|^twins$|\bno twins$|^seed \d+"
    r"|^seconds with|\bsteps\b"
    r"|^(\S+Suite\S*\s+|=*\s*)\d+ (passed|failed|error)"
)
_MOST_LINES = 12
_DAY_MS = 86_400_000


@dataclass(slots=True, frozen=True)
class Result:
    sources: str
    has_passed: bool
    seconds: float
    gave: list[str]


def main(arguments: list[str] | None = None, steps: tuple[Step, ...] = STEPS) -> int:
    names = [step.name for step in steps]
    parser = argparse.ArgumentParser(
        prog="tests.nightly",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(names))
    parser.add_argument("--list", action="store_true", help="print the steps and run none")
    parser.add_argument("--all", action="store_true", help="run the steps of other nights, too")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    options = parser.parse_args(arguments)
    unknown = set(options.steps) - set(names)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if options.list:
        width = max(map(len, names))
        for step in steps:
            note = "" if step.nights == 1 else f" (every {step.nights} nights)"
            _say(f"{step.name:<{width}} {step.minutes:>3} min  {step.what}{note}")
        return 0
    if options.steps:
        chosen = [step for step in steps if step.name in options.steps]
    elif options.all:
        chosen = list(steps)
    else:
        chosen = due_steps(int(SystemClock().now_ms() // _DAY_MS), steps)
    with ended_by_signals():
        return _run_all(chosen, Notebook(options.results), again=bool(options.steps))


class Notebook:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = _sources()
        folder.mkdir(parents=True, exist_ok=True)

    def output_of(self, step: Step) -> Path:
        return self.folder / f"{step.name}.txt"

    def find(self, step: Step) -> Result | None:
        path = self.folder / f"{step.name}.json"
        if not path.exists():
            return None
        result = Result(**json.loads(path.read_text(encoding="utf-8")))
        return result if result.sources == self.sources else None

    def write(self, step: Step, result: Result) -> None:
        path = self.folder / f"{step.name}.json"
        path.write_text(json.dumps(asdict(result)), encoding="utf-8")


def _run_all(steps: list[Step], notebook: Notebook, *, again: bool) -> int:
    for step in steps:
        earlier = notebook.find(step)
        if earlier and earlier.has_passed and not again:
            _say(f"== {step.name}: has passed on these sources")
            continue
        _say(f"== {step.name}: {step.what}, about {step.minutes} min")
        result = _run(step, notebook)
        notebook.write(step, result)
        _say(f"   {_outcome(result)}; all of it: {notebook.output_of(step)}")
        for line in result.gave:
            _say(f"   {line}")
    _say("\n" + "\n".join(_table(steps, notebook)))
    results = [notebook.find(step) for step in steps]
    return 0 if all(result and result.has_passed for result in results) else 1


def _run(step: Step, notebook: Notebook) -> Result:
    began = time.monotonic()
    with notebook.output_of(step).open("w", encoding="utf-8") as output:
        command = [sys.executable, "-m", *step.command]
        kafka = {} if step.kafka is None else {"WIREBROKER_TESTS_KAFKA": step.kafka}
        status = run_step(command, ROOT, output, environment=kafka)
    seconds = time.monotonic() - began
    lines = notebook.output_of(step).read_text(encoding="utf-8", errors="replace").splitlines()
    return Result(notebook.sources, status == 0, seconds, gave_of(lines))


def gave_of(lines: list[str]) -> list[str]:
    """Return the summary lines of an output, or else its last line."""
    summary_lines = [line.strip() for line in lines if _GAVE.search(line.strip())]
    return summary_lines[-_MOST_LINES:] or [line.strip() for line in lines if line.strip()][-1:]


def _table(steps: list[Step], notebook: Notebook) -> list[str]:
    rows = ["| step | outcome | gave |", "| --- | --- | --- |"]
    for step in steps:
        result = notebook.find(step)
        outcome = _outcome(result) if result else "did not run"
        rows.append(f"| {step.name} | {outcome} | {'; '.join(result.gave) if result else ''} |")
    return rows


def _outcome(result: Result) -> str:
    outcome = "passed" if result.has_passed else "FAILED"
    return f"{outcome}, {result.seconds // 60:.0f} min {result.seconds % 60:02.0f} s"


def _sources() -> str:
    """Return an identifier of the sources: the commit and the differences from it."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    changes = subprocess.run(
        ["git", "diff", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return hashlib.sha256(commit + changes).hexdigest()[:16]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
