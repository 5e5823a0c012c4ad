"""Measure wirebroker beside Apache Kafka 4.3.1, in pairs, and write the table: `make bench`.

    python -m benchmarks [--quick] [--pairs 9] [--only TEXT] [--output DIR]
    python -m benchmarks --against CHECKOUT     beside another checkout of wirebroker instead

The CPU of the broker per record is the primary figure, the rate the guard: a rate also depends on
the generator, which shares the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import report
from benchmarks.cases import all_cases
from benchmarks.machine import describe
from benchmarks.pairs import Pairs, measure
from compat_tests import tools
from compat_tests.brokers import ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUICK_SCALE = 0.25
_SETTINGS = {"log.retention.check.interval.ms": "3600000"}


class OtherCheckout(Wirebroker):
    """The broker of another checkout, on the same interpreter and packages."""

    def __init__(self, directory: Path, checkout: Path) -> None:
        super().__init__(directory, _SETTINGS)
        self._checkout = checkout.absolute()

    def _command(self) -> list[str]:
        # The working directory stands first in the path that `-m` looks through.
        return ["env", "-C", str(self._checkout), *super()._command()]


def main() -> int:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cases, short runs, 3 pairs")
    parser.add_argument("--pairs", type=int, help="runs of each broker (9; quick: 3)")
    parser.add_argument("--only", action="append", default=[], help="cases with this in their name")
    parser.add_argument("--output", type=Path, help="write table.md, runs.json and ratios.svg here")
    parser.add_argument("--against", type=Path, help="another checkout, instead of Apache Kafka")
    options = parser.parse_args()
    pairs = options.pairs or (3 if options.quick else 9)
    cases = [
        case
        for case in all_cases(_QUICK_SCALE if options.quick else 1)
        if (case.is_quick or not options.quick or options.only)
        and (not options.only or any(text in case.name for text in options.only))
    ]
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe(),
        "peer": str(options.against or f"Apache Kafka {tools.KAFKA_VERSION}"),
        "pairs": str(pairs),
    }
    results: dict[str, Pairs] = {}
    with _brokers(options.against) as (ours, theirs):
        for number, case in enumerate(cases, 1):
            print(f"{number}/{len(cases)} {case.name} …", file=sys.stderr, flush=True)
            results[case.name] = measure(case, ours, theirs, pairs)
            print(report.table(results, [case]).splitlines()[-1], file=sys.stderr, flush=True)
    title = ", ".join(f"{name}: {fact}" for name, fact in facts.items())
    text = f"{title}\n\n{report.table(results, cases)}\n"
    print(text)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "table.md").write_text(text)
        report.write_json(options.output / "runs.json", facts, results)
        report.plot(options.output / "ratios.svg", results, title)
    return 0


@contextlib.contextmanager
def _brokers(checkout: Path | None) -> Iterator[tuple[Broker, Broker]]:
    with tempfile.TemporaryDirectory(prefix="wirebroker-bench-") as directory:
        ours = Wirebroker(Path(directory) / "ours", _SETTINGS)
        theirs: Broker = (
            ApacheKafka(Path(directory) / "theirs", _SETTINGS)
            if checkout is None
            else OtherCheckout(Path(directory) / "theirs", checkout)
        )
        try:
            ours.start()
            theirs.start()
            yield ours, theirs
        finally:
            ours.stop()
            theirs.stop()


if __name__ == "__main__":
    sys.exit(main())
