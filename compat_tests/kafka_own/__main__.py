"""Run Apache Kafka's own integration tests against wirebroker's processes.

python -m compat_tests.kafka_own [CLASS ...] [--methods REGEX] [--broker apache] [--part 1/4]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from compat_tests.kafka_own import suite
from compat_tests.kafka_own.reports import outdated, reasons, unexpected
from compat_tests.suites.outcomes import failed, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from compat_tests.suites.outcomes import Outcome

    RunClass = Callable[[str], list[Outcome]]

_STREAMS: Final = "org.apache.kafka.streams."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="patterns; default: all")
    parser.add_argument(
        "--methods", default=".*", metavar="PATTERN", help="run only methods with such a name"
    )
    parser.add_argument("--broker", choices=("wirebroker", "apache"), default="wirebroker")
    parser.add_argument("--protocols", choices=("classic", "all"), default="all")
    parser.add_argument(
        "--controllers",
        type=int,
        default=suite.MOST_CONTROLLERS,
        help="most controllers of a cluster",
    )
    parser.add_argument("--jobs", type=int, default=2, help="classes at a time")
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="I/N", help="run part I of N")
    parser.add_argument("--output", type=Path, help="keep the reports in this folder")
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def chosen(
    names: Sequence[str],
    patterns: Sequence[str],
    part: tuple[int, int],
    left_out: Collection[str] = (),
) -> list[str]:
    """Return every N-th matching class, from the I-th on.

    Without patterns, return all classes except those in `left_out` (names without the package) and
    those of Kafka Streams, which test a library.
    """
    if patterns:
        matches = [name for name in names if any(re.search(pattern, name) for pattern in patterns)]
    else:
        matches = [
            name
            for name in names
            if name.rpartition(".")[2] not in left_out and not name.startswith(_STREAMS)
        ]
    number, count = part
    return matches[number - 1 :: count]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run(names: Sequence[str], run: RunClass, jobs: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(run, names)
        for name, class_run in zip(names, runs, strict=True):
            _say(f"{name:75} {totals(class_run)}")
            outcomes += class_run
    return outcomes


def main() -> int:
    """Run the classes and print each unexpected result; return 1 if there is one, else 0."""
    options = _options()
    is_apache = options.broker == "apache"
    broker = suite.Broker(
        suite.APACHE if is_apache else suite.own_command(),
        "" if options.protocols == "all" else options.protocols,
        options.controllers,
    )
    output = options.output or Path(tempfile.mkdtemp(prefix="kafka-own-"))
    left_out = () if is_apache else reasons("known_failures.txt")
    names = chosen(suite.class_names(), options.classes, options.part, left_out)
    run = partial(suite.run_class, broker=broker, output=output, methods=options.methods)
    outcomes = _run(names, run, options.jobs)
    failures = failed(outcomes) if is_apache else unexpected(outcomes)
    passed = [] if is_apache else outdated(outcomes)
    for failure in failures:
        _say(f"FAILED {failure.test}: {failure.why}")
    for test in passed:
        _say(f"passed, so remove it from known_failures.txt: {test}")
    _say(f"{totals(outcomes)}; {len(failures)} of the failures are unexpected; reports: {output}")
    return bool(failures or passed)


if __name__ == "__main__":
    sys.exit(main())
