"""Run librdkafka's and kafka-python's own tests against a broker.

    python -m compat_tests.suites                                 transaction tests of both
    python -m compat_tests.suites --security                      tests of ACLs, and more
    python -m compat_tests.suites --login [librdkafka 0135]       librdkafka's, by SASL_SSL
    python -m compat_tests.suites librdkafka 0011 0103            librdkafka's, by number
    python -m compat_tests.suites kafka-python -k group           kafka-python's, as pytest selects
    python -m compat_tests.suites --broker apache                 the same against Apache Kafka
    python -m compat_tests.suites --broker cluster                against three wirebrokers
    python -m compat_tests.suites --broker quorum                 the same, with three controllers
    python -m compat_tests.suites --bootstrap 127.0.0.1:9092      against a running broker

The last line has the numbers of passed, failed and skipped tests; the status is 0 if none failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.suites import kafka_python, librdkafka
from compat_tests.suites.outcomes import failed, totals
from compat_tests.suites.protected import address_of, librdkafka_login, protected_broker
from tests.support.brokers.brokers import make_broker
from tests.support.brokers.own_trio import OwnTrio, VotingTrio
from tests.support.tools.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compat_tests.suites.outcomes import Outcome
    from tests.support.brokers.brokers import Broker

SUITES = ("librdkafka", "kafka-python")
MODULES = {"librdkafka": librdkafka, "kafka-python": kafka_python}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="compat_tests.suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--broker", choices=("wirebroker", "apache", "cluster", "quorum"), default="wirebroker"
    )
    parser.add_argument("--bootstrap", help="HOST:PORT of a broker that runs already")
    parser.add_argument("--security", action="store_true", help="the tests of ACLs")
    parser.add_argument("--login", action="store_true", help="log in over TLS; librdkafka alone")
    parser.add_argument("--output", type=Path, help="folder for logs and results")
    parser.add_argument("suite", nargs="?", choices=SUITES)
    parser.add_argument("tests", nargs=argparse.REMAINDER, metavar="TEST")
    options = parser.parse_args()
    output = (options.output or Path(tempfile.mkdtemp(prefix="client-suites-"))).resolve()
    _say(f"logs and results: {output}")
    outcomes: list[Outcome] = []
    try:
        if options.login:
            librdkafka.suite_folder()
            outcomes += _run_logged_in(options, output / "login")
        for suite in [] if options.login else [options.suite] if options.suite else SUITES:
            MODULES[suite].suite_folder()  # built on first use
            outcomes += _run_suite(suite, options, output)
    except ToolError as error:
        _say(f"compat_tests.suites: {error}")
        return 1
    _say(totals(outcomes))
    return bool(failed(outcomes))


def _run_suite(suite: str, options: argparse.Namespace, output: Path) -> list[Outcome]:
    module = MODULES[suite]
    chosen = module.SECURITY_TESTS if options.security else module.TRANSACTION_TESTS
    tests = options.tests or chosen
    if options.bootstrap:
        return _run_tests(suite, tests, options.bootstrap, output)
    settings = module.SECURITY_SETTINGS if options.security else module.BROKER_SETTINGS
    directory, kind = output / suite / "broker", options.broker
    broker: Broker | OwnTrio | VotingTrio
    if kind == "cluster":
        broker = OwnTrio(directory, settings)
    elif kind == "quorum":
        broker = VotingTrio(directory, settings)
    elif options.security and module is kafka_python:
        broker = kafka_python.broker_for_all(kind, directory)
    else:
        broker = make_broker(kind, directory, settings)
    broker.start()
    try:
        return _run_tests(suite, tests, broker.bootstrap, output)
    finally:
        broker.stop()


def _run_logged_in(options: argparse.Namespace, output: Path) -> list[Outcome]:
    broker = protected_broker(options.broker, output, librdkafka.SECURITY_SETTINGS)
    broker.start()
    client = librdkafka_login(output)
    outcomes: list[Outcome] = []
    try:
        for number in options.tests or librdkafka.LOGIN_TESTS:
            outcomes += _timed(partial(librdkafka.run, number, address_of(broker), output, client))
    finally:
        broker.stop()
    return outcomes


def _run_tests(suite: str, tests: Sequence[str], bootstrap: str, output: Path) -> list[Outcome]:
    if suite == "kafka-python":
        return _timed(lambda: kafka_python.run(tests, bootstrap, output / suite))
    outcomes: list[Outcome] = []
    for number in tests:
        outcomes += _timed(partial(librdkafka.run, number, bootstrap, output / suite))
    return outcomes


def _timed(run: Callable[[], list[Outcome]]) -> list[Outcome]:
    started = time.monotonic()
    outcomes = run()
    for outcome in outcomes:
        _say(f"{outcome.result}: {outcome.test} {outcome.why}".rstrip())
    _say(f"  {time.monotonic() - started:.0f} s")
    return outcomes


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
