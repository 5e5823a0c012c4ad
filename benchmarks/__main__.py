"""Compare wirebroker with Apache Kafka, in pairs, and write a table: `make bench`.

    python -m benchmarks [--quick] [--pairs 9] [--only TEXT] [--output DIR [--resume]]
    python -m benchmarks --ours CHECKOUT        that one's broker instead of this one's
    python -m benchmarks --ours .venv/compiled --plain .   both builds, and Apache Kafka
    python -m benchmarks --against CHECKOUT     compare with another checkout of wirebroker
    python -m benchmarks --let-cores-sleep      do not keep cores awake (awake_cores.py)

CPU per record is the primary figure, because rates also depend on the generator.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import report
from benchmarks.cases import QUICK_SCALE, Case, all_cases, named
from benchmarks.measurement.awake_cores import KEPT_AWAKE, add_option, awake_cores
from benchmarks.measurement.brokers import side_by_side, version
from benchmarks.measurement.machine import describe
from benchmarks.measurement.pairs import measure
from benchmarks.measurement.warm_memory import warm_memory
from tests.support.tools import tools

if TYPE_CHECKING:
    from benchmarks.measurement.pairs import Pairs


def main() -> int:
    options = _arguments()
    with awake_cores(enabled=not options.let_cores_sleep) as possible:
        pass  # each case reports whether this is possible
    cores = f"{possible} for small raw requests" if possible == KEPT_AWAKE else possible
    pairs = options.pairs or (3 if options.quick else 9)
    table = all_cases(QUICK_SCALE if options.quick else 1)
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe(),
        "cores": cores,
        "memory": f"{warm_memory() >> 30} GiB touched before",
        "ours": version(options.ours),
        "peer": str(options.against or f"Apache Kafka {tools.KAFKA_VERSION}"),
        "pairs": str(pairs),
    }
    results: dict[str, Pairs] = {}
    output: Path | None = options.output
    if output and options.resume:
        results = report.read_json(output / "runs.json", cores)
    cases = [case for case in _chosen(table, options) if case.name not in results]
    if options.plain:
        facts["plain"] = version(options.plain)
    with side_by_side(options.ours, options.against, options.plain) as (wirebroker, peer, plain):
        for number, case in enumerate(cases, 1):
            print(f"{number}/{len(cases)} {case.name} …", file=sys.stderr, flush=True)
            with awake_cores(enabled=case.is_awake and not options.let_cores_sleep) as state:
                results[case.name] = measure(case, wirebroker, peer, pairs, plain)
            length = ", short runs" if options.quick else ""
            results[case.name].conditions = ("awake" if state == KEPT_AWAKE else "asleep") + length
            print(report.table(results, [case]).splitlines()[-1], file=sys.stderr, flush=True)
            if output:  # after each case, so that --resume can continue
                report.write(output, facts, results, table)
    print(report.text(facts, results, table))
    if output:
        report.plot(output / "ratios.svg", results, report.title(facts))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cases, short runs, 3 pairs")
    parser.add_argument("--pairs", type=int, help="runs of each broker (9; quick: 3)")
    parser.add_argument("--only", action="append", default=[], help="cases with this in their name")
    parser.add_argument("--output", type=Path, help="write table.md, runs.json and ratios.svg here")
    parser.add_argument("--resume", action="store_true", help="continue the run in --output")
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--plain", type=Path, help="plain Python checkout to measure as well")
    parser.add_argument("--against", type=Path, help="checkout to compare with, instead of Kafka")
    add_option(parser)
    return parser.parse_args()


def _chosen(table: list[Case], options: argparse.Namespace) -> list[Case]:
    if options.only:
        return named(table, options.only)
    return [case for case in table if case.is_quick or not options.quick]


if __name__ == "__main__":
    sys.exit(main())
