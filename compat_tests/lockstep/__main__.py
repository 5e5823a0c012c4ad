"""Run the lockstep from the command line.

python -m compat_tests.lockstep --kind records --seeds 7 --steps 123    again, to a step
python -m compat_tests.lockstep --seeds 1-50                            all kinds, many seeds
python -m compat_tests.lockstep --kind groups --seeds 3 --print         every step and response
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.lockstep.kinds import KINDS
from compat_tests.lockstep.minimising import minimise
from compat_tests.lockstep.pair import Pair
from compat_tests.lockstep.running import Outcome, run, transcript_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat_tests.lockstep.kind import Kind


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Random steps to both brokers.")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--seeds", default="1000", metavar="FIRST[-LAST]")
    parser.add_argument("--steps", type=int, default=300, metavar="N")
    parser.add_argument("--print", action="store_true", help="print every step with its answer")
    parser.add_argument("--whole", action="store_true", help="don't look for fewer steps")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    kinds = list(KINDS.values()) if options.kind == "all" else [KINDS[options.kind]]
    bad = 0
    runs = [(seed, kind) for seed in range(int(first), int(last or first) + 1) for kind in kinds]
    while runs:
        with tempfile.TemporaryDirectory() as directory, Pair(Path(directory)) as pair:
            is_good = True
            while runs and is_good:
                is_good = _run(pair, *runs.pop(0), options)
            # A difference could make the next runs fail: they get new brokers.
            bad += not is_good
    return 1 if bad else 0


def _run(pair: Pair, seed: int, kind: type[Kind], options: argparse.Namespace) -> bool:
    started_s = time.monotonic()
    outcome = run(pair, kind, seed=seed, steps=options.steps)
    _say(_summary(outcome, time.monotonic() - started_s))
    if options.print:
        _say(_transcript(outcome))
    if not outcome.is_good:
        _say(outcome.report())
        if not options.whole:
            _say(minimise(pair, outcome))
    return outcome.is_good


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _summary(outcome: Outcome, took_s: float) -> Iterable[str]:
    count = len(outcome.done)
    verdict = "same" if outcome.is_good else "DIFFERENT"
    yield (
        f"{outcome.kind}, seed {outcome.seed}: {count} steps, {outcome.refused} refused,"
        f" {took_s:.1f} s: {verdict}"
    )
    for row, times in outcome.agreed.items():
        yield f"  agreed, {times} lines: {row.reason}"


def _transcript(outcome: Outcome) -> Iterable[str]:
    for done in outcome.done:
        yield f"# {done.step.line_number}"
        yield from transcript_lines(done.step)
        yield "----"
        yield from done.answers.apache
        yield ""


if __name__ == "__main__":
    sys.exit(main())
