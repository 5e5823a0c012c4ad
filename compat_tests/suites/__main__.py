"""Run librdkafka's and kafka-python's own tests against a broker.

    python -m compat_tests.suites                                 those of transactions, of both
    python -m compat_tests.suites librdkafka 0011 0103            of librdkafka, by number
    python -m compat_tests.suites kafka-python -k group           of kafka-python, as pytest has it
    python -m compat_tests.suites --broker apache                 the same against Apache Kafka
    python -m compat_tests.suites --broker cluster                against a cluster of three of ours
    python -m compat_tests.suites --bootstrap 127.0.0.1:9092      against a broker that runs already

The last line says how many tests passed, failed and were skipped; the status is 0 if none failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.suites import kafka_python, librdkafka
from compat_tests.suites.outcomes import failed, totals
from tests.support.brokers import make_broker
from tests.support.own_trio import OwnTrio
from tests.support.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.suites.outcomes import Outcome

SUITES = ("librdkafka", "kafka-python")
FOLDERS = {"librdkafka": librdkafka.suite_folder, "kafka-python": kafka_python.suite_folder}
SETTINGS = {"librdkafka": librdkafka.BROKER_SETTINGS, "kafka-python": kafka_python.BROKER_SETTINGS}


def main() -> int:
    """Run what the command line names and print the results."""
    parser = argparse.ArgumentParser(
        prog="compat_tests.suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--broker", choices=("wirebroker", "apache", "cluster"), default="wirebroker"
    )
    parser.add_argument("--bootstrap", help="HOST:PORT of a broker that runs already")
    parser.add_argument("--output", type=Path, help="folder for logs and results")
    parser.add_argument("suite", nargs="?", choices=SUITES)
    parser.add_argument("tests", nargs=argparse.REMAINDER, metavar="TEST")
    options = parser.parse_args()
    output = (options.output or Path(tempfile.mkdtemp(prefix="client-suites-"))).resolve()
    _say(f"logs and results: {output}")
    outcomes: list[Outcome] = []
    try:
        for suite in [options.suite] if options.suite else SUITES:
            FOLDERS[suite]()  # built on first use
            outcomes += _run_suite(suite, options, output)
    except ToolError as error:
        _say(f"compat_tests.suites: {error}")
        return 1
    _say(totals(outcomes))
    return bool(failed(outcomes))


def _run_suite(suite: str, options: argparse.Namespace, output: Path) -> list[Outcome]:
    if options.bootstrap:
        return _run_tests(suite, options.tests, options.bootstrap, output)
    place, settings = output / suite / "broker", SETTINGS[suite]
    is_cluster = options.broker == "cluster"
    broker = (
        OwnTrio(place, settings) if is_cluster else make_broker(options.broker, place, settings)
    )
    broker.start()
    try:
        return _run_tests(suite, options.tests, broker.bootstrap, output)
    finally:
        broker.stop()


def _run_tests(suite: str, tests: list[str], bootstrap: str, output: Path) -> list[Outcome]:
    if suite == "kafka-python":
        return _timed(
            lambda: kafka_python.run(
                tests or kafka_python.TRANSACTION_TESTS, bootstrap, output / suite
            )
        )
    outcomes: list[Outcome] = []
    for number in tests or librdkafka.TRANSACTION_TESTS:
        outcomes += _timed(lambda: librdkafka.run(number, bootstrap, output / suite))  # noqa: B023
    return outcomes


def _timed(run: Callable[[], list[Outcome]]) -> list[Outcome]:
    started = time.monotonic()
    outcomes = run()
    for one in outcomes:
        _say(f"{one.result}: {one.test} {one.why}".rstrip())
    _say(f"  {time.monotonic() - started:.0f} s")
    return outcomes


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
