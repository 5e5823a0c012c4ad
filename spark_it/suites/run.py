"""Run Spark's own suites for its Kafka connector against a broker (`make spark-suite`).

    python -m spark_it.suites.run                             the suites of SUITES, own wirebroker
    python -m spark_it.suites.run --broker apache             the same against Apache Kafka
    python -m spark_it.suites.run KafkaRelationSuiteV2        another of Spark's suites
    python -m spark_it.suites.run --bootstrap 127.0.0.1:9092  against a running broker
    python -m spark_it.suites.run --full                      all 32, resumable (full.py)

Every topic of that broker whose name does not begin with "__" is deleted before and after each
suite, because suites reuse names. The last line shows how many tests passed, failed and were
skipped; the status is 0 if none failed. LATER lists tests that wirebroker does not pass yet; they
are counted separately, and fail when they pass, so that they are removed from it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from spark_it.suites import install
from tests.support.brokers.brokers import make_broker
from tests.support.tools import tools
from tests.support.tools.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUITES = (
    "ConsumerStrategySuite",
    "KafkaOffsetReaderSuite",
    "consumer.KafkaDataConsumerSuite",
    "KafkaSinkBatchSuiteV2",
    "KafkaRelationSuiteV2",
)
# The sink suites write to a missing topic and expect an error.
BROKER_SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}
# (suite, test) -> what wirebroker lacks.
LATER: dict[tuple[str, str], str] = {}
# For suites that need more than LIMIT_S.
LIMITS_S = {"KafkaContinuousSourceSuite": 3600.0}
LIMIT_S = 900.0  # for one suite

_PACKAGE = "org.apache.spark.sql.kafka010"
# Fastest for short runs: no collector threads, no second compiler.
_QUICKLY = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


class Outcome(NamedTuple):
    """The result of one test: "passed", "failed", "skipped" or "later"."""

    suite: str
    test: str
    result: str
    why: str = ""


def run_suites(
    suites: Sequence[str],
    bootstrap: str,
    directory: Path,
    *,
    wirebroker: bool,
    log_requests: bool = False,
    resumes: bool = False,
) -> dict[str, list[Outcome]]:
    """Run suites in one Java process; return the outcomes of each.

    The broker's topics are deleted. `wirebroker` counts the tests of LATER separately; `resumes`
    skips suites that passed.
    """
    (directory / "tmp").mkdir(parents=True, exist_ok=True)
    pending = [suite for suite in suites if not (resumes and has_passed(suite, directory))]
    log = directory / "suites.txt"
    limit_s = sum(LIMITS_S.get(suite, LIMIT_S) for suite in pending)
    command = _command(pending, bootstrap, directory, log_requests=log_requests)
    status = tools.run_logged(command, log, directory=directory, limit_s=limit_s) if pending else 0
    outcomes = {suite: list(_outcomes(suite, directory / "results")) for suite in suites}
    has_failed = any(
        outcome.result == "failed"
        for suite_outcomes in outcomes.values()
        for outcome in suite_outcomes
    )
    for suite in pending:
        suite_outcomes = outcomes[suite]
        if not suite_outcomes or (status != 0 and not has_failed):
            # A time limit, or an exception in beforeAll.
            text = log.read_text(errors="replace")
            suite_outcomes.append(Outcome(suite, "the suite as a whole", "failed", text[-2000:]))
            # A resumed run must repeat the suite.
            _result_of(suite, directory / "results").unlink(missing_ok=True)
    if not wirebroker:
        return outcomes
    return {
        suite: [_with_later(outcome) for outcome in suite_outcomes]
        for suite, suite_outcomes in outcomes.items()
    }


def _command(
    suites: Sequence[str], bootstrap: str, directory: Path, *, log_requests: bool
) -> list[str]:
    properties = {
        "spark.testing": "1",
        "spark.test.home": str(directory),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.unsafe.exceptionOnMemoryLeak": "true",
        "java.io.tmpdir": str(directory / "tmp"),
        "derby.system.durability": "test",
        "jdk.reflect.useDirectMethodHandle": "false",
        "io.netty.tryReflectionSetAccessible": "true",
        "log4j2.configurationFile": str(Path(__file__).with_name("log4j2.properties")),
        "wirebroker.log": str(directory / "suites.log"),
        "wirebroker.netlevel": "debug" if log_requests else "warn",
        "wirebroker.bootstrap": bootstrap,
        "wirebroker.wipe": "true",
    }
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    tests = str(install.suites_folder() / "tests")
    chosen = [part for suite in suites for part in ("-s", f"{_PACKAGE}.{suite}")]
    return [
        *(tools.java_command(), "-Xmx1g", "-Xss4m", *_QUICKLY, *opened),
        *("--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", ":".join(map(str, install.class_path())), "org.scalatest.tools.Runner"),
        *("-R", tests, "-oDW", "-u", str(directory / "results"), *chosen),
    ]


def has_passed(suite: str, directory: Path) -> bool:
    """Return whether a suite ran to its end without a failure."""
    outcomes = list(_outcomes(suite, directory / "results"))
    return bool(outcomes) and all(outcome.result != "failed" for outcome in outcomes)


def _outcomes(suite: str, results: Path) -> Iterator[Outcome]:
    path = _result_of(suite, results)
    if not path.is_file():
        return
    for case in ET.parse(path).iter("testcase"):
        children = {child.tag: child for child in case}
        problem = children.get("failure", children.get("error"))
        result = (
            "failed" if problem is not None else "skipped" if "skipped" in children else "passed"
        )
        message = "" if problem is None else problem.get("message", "")
        yield Outcome(suite, case.get("name", ""), result, message)


def _result_of(suite: str, results: Path) -> Path:
    return results / f"TEST-{_PACKAGE}.{suite}.xml"


def _with_later(outcome: Outcome) -> Outcome:
    reason = LATER.get((outcome.suite, outcome.test))
    if reason is None:
        return outcome
    if outcome.result == "passed":
        return outcome._replace(result="failed", why="it passes: take it out of LATER")
    return outcome._replace(result="later", why=reason)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="spark_it.suites.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="with --full: its steps")
    parser.add_argument("--full", action="store_true", help="every suite, what hasn't passed")
    parser.add_argument("--broker", choices=("wirebroker", "apache"), default="wirebroker")
    parser.add_argument("--bootstrap", help="HOST:PORT of a broker whose topics may be deleted")
    parser.add_argument("--output", type=Path, help="folder for logs and results")
    parser.add_argument("--log-requests", action="store_true", help="log each request")
    parser.add_argument("--resume", action="store_true", help="leave out what --output has passed")
    options = parser.parse_args()
    if options.resume and not options.output:
        parser.error("--resume needs --output")
    if options.full:
        from spark_it.suites.full import run_full

        return run_full(options.broker, options.suites)
    # So that SIGTERM also stops the broker and Java.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options.suites = options.suites or SUITES
    output = options.output or Path(tempfile.mkdtemp(prefix="spark-suites-"))
    try:
        install.suites_folder()
        if options.bootstrap:
            return _run_all(options, options.bootstrap, output)
        broker = make_broker(options.broker, output / "broker", BROKER_SETTINGS)
        broker.start()
        try:
            return _run_all(options, broker.bootstrap, output)
        finally:
            broker.stop()
    except ToolError as error:
        _say(f"spark_it.suites.run: {error}")
        return 1


def _run_all(options: argparse.Namespace, bootstrap: str, output: Path) -> int:
    _say(f"logs and results: {output}")
    started = time.monotonic()
    outcomes_by_suite = run_suites(
        options.suites,
        bootstrap,
        output.resolve(),
        wirebroker=options.broker == "wirebroker",
        log_requests=options.log_requests,
        resumes=options.resume,
    )
    for suite, outcomes in outcomes_by_suite.items():
        _say(f"{suite:<44} {_totals(outcomes)}")
        for outcome in outcomes:
            if outcome.result in ("failed", "later"):
                _say(f"  {outcome.result}: {outcome.test}: {outcome.why}")
    all_outcomes = [outcome for outcomes in outcomes_by_suite.values() for outcome in outcomes]
    _say(f"{_totals(all_outcomes)}, {time.monotonic() - started:.0f} s")
    return any(outcome.result == "failed" for outcome in all_outcomes)


def _totals(outcomes: Sequence[Outcome]) -> str:
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for outcome in outcomes:
        counts[outcome.result] = counts.get(outcome.result, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
