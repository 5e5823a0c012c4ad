"""Compare this tree with an earlier commit and with Apache Kafka, for all cases, in one run.

    python -m benchmarks.commits COMMIT [--quick] [--pairs 9] [--only TEXT] [--output DIR]

The three brokers run in turn in each case and each start. Both wirebroker trees are compiled; the
earlier commit is cloned into .venv/commits and compiled with that commit's Makefile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.cases import QUICK_SCALE, all_cases, named
from benchmarks.measurement.awake_cores import add_option, awake_cores
from benchmarks.measurement.brokers import Checkout, apache_kafka, side_by_side, version
from benchmarks.measurement.machine import describe
from benchmarks.measurement.pairs import Pairs, measure
from benchmarks.measurement.warm_memory import warm_memory
from benchmarks.scenarios.start_and_memory import measure_rounds, table
from compiling.tree import ROOT, make_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUICK_PAIRS: Final = 5
_PAIRS: Final = 9
_STARTS: Final = 15
# Names the starts among the cases of --only.
_START: Final = "start"


def main() -> int:
    options = _arguments()
    old_name = _git("rev-parse", "--short", "--verify", f"{options.commit}^{{commit}}")
    old, new = _compiled(old_name), ROOT / ".venv" / "compiled"
    make_tree(new)
    warm_memory()
    lines: list[str] = []
    for line in _lines(new, old, old_name, options):
        print(line, flush=True)
        lines.append(line)
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            (options.output / "commits.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", metavar="COMMIT", help="commit to compare this tree with")
    parser.add_argument("--quick", action="store_true", help="short runs, 5 of each broker")
    parser.add_argument("--pairs", type=int, help="runs of each broker (9; quick: 5)")
    parser.add_argument("--starts", type=int, default=_STARTS, help="starts of each broker (15)")
    parser.add_argument(
        "--only", action="append", default=[], help="cases with this in their name, or `start`"
    )
    parser.add_argument("--output", type=Path, help="write commits.md here")
    add_option(parser)
    return parser.parse_args()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _compiled(commit: str) -> Path:
    checkout = ROOT / ".venv" / "commits" / commit
    if not checkout.exists():
        _git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(checkout))
    # Also after an interrupted run.
    _git("-C", str(checkout), "checkout", "--quiet", "--detach", commit)
    command = ["make", "compiled", f"PYTHON={sys.executable}"]
    subprocess.run(command, cwd=checkout, check=True, stdout=sys.stderr)
    tree = checkout / ".venv" / "compiled"
    if "(compiled)" not in version(tree):
        raise RuntimeError(f"{tree} is not compiled for {sys.executable}: delete {checkout}")
    return tree


def _lines(new: Path, old: Path, old_name: str, options: argparse.Namespace) -> Iterator[str]:
    yield f"{version(new)}; {old_name}: {version(old)}; {describe()}. Above 1: ours is better."
    yield ""
    titles = (f"rate / {old_name}", f"CPU: {old_name} / ours", "rate / Kafka", "CPU: Kafka / ours")
    yield f"| case | {' | '.join(titles)} |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield from _case_rows(new, old, options)
    if not options.only or _START in options.only:
        yield ""
        yield _start_table(new, old, old_name, options)


def _case_rows(new: Path, old: Path, options: argparse.Namespace) -> Iterator[str]:
    pairs = options.pairs or (_QUICK_PAIRS if options.quick else _PAIRS)
    cases = named(all_cases(QUICK_SCALE if options.quick else 1), options.only)
    with side_by_side(new, None, old) as (current, kafka, earlier):
        for case in cases:
            with awake_cores(enabled=case.is_awake and not options.let_cores_sleep):
                of_kafka = measure(case, current, kafka, pairs, earlier)
            of_old = Pairs(of_kafka.ours, of_kafka.plain)
            ratios = [
                ratio
                for comparison in (of_old, of_kafka)
                for ratio in (comparison.rate_ratio(), comparison.cpu_ratio())
            ]
            yield f"| {case.name} | {' | '.join(map(str, ratios))} |"


def _start_table(new: Path, old: Path, old_name: str, options: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory(prefix="wirebroker-start-") as name:
        folder = Path(name)
        brokers = {
            "ours": Checkout(folder / "ours", new),
            old_name: Checkout(folder / "earlier", old),
            "Kafka": apache_kafka(folder / "kafka", {}),
        }
        with awake_cores(enabled=not options.let_cores_sleep):
            return table(measure_rounds(brokers, options.starts))


if __name__ == "__main__":
    sys.exit(main())
