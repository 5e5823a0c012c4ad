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
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.harness.project_files import ROOT
from tests.support.harness.step_process import ended_by_signals, run_step
from wirebroker.base.clock import SystemClock

RESULTS = ROOT / ".venv" / "nightly"
_PYTEST = ("pytest", "--color=no", "-p", "no:cacheprovider", "-s", "--timeout", "36000")
# Patterns of summary lines.
_GAVE = re.compile(
    r"schedules,|points: |: \d+ records,|\d+ kills,|^twins$|\bno twins$|^seed \d+|\bsteps\b"
    r"|^(\S+Suite\S*\s+|=*\s*)\d+ (passed|failed|error)"
)
_MOST_LINES = 12
_DAY_MS = 86_400_000


@dataclass(slots=True, frozen=True)
class Step:
    """One long target.

    Args:
        name: Argument that selects it.
        command: Arguments after `python -m`.
        minutes: Approximate duration on two idle cores.
        what: Description.
        kafka: Version of Apache Kafka; None: the reference version.
        nights: Nights from one run to the next. Steps that test what changes rarely (Apache Kafka
            itself, the suites of clients) do not run each night; some take turns.
    """

    name: str
    command: tuple[str, ...]
    minutes: int
    what: str
    kafka: str | None = None
    nights: int = 1


@dataclass(slots=True, frozen=True)
class Result:
    sources: str
    has_passed: bool
    seconds: float
    gave: list[str]


def _tests(*arguments: str) -> tuple[str, ...]:
    return (*_PYTEST, *arguments)


_SPARKS_OTHER_SUITES = (
    "KafkaSinkMicroBatchStreamingSuite",
    "KafkaContinuousSinkSuite",
    "KafkaSourceStressSuite",
    "KafkaContinuousSourceTopicDeletionSuite",
    "KafkaRelationSuiteV1",
    "KafkaMicroBatchV2SourceWithAdminSuite",
)

_SPARK_FAULTS = {
    "": "pipelines whose brokers, drivers and workers are killed",
    "directory_": "archive jobs that are killed",
    "cluster_": "pipelines with killed executors and with full disks",
}

STEPS = (
    Step(
        "loop-holds",
        _tests(
            "tests/unit/wirebroker/api/test_loop_holds.py",
            "tests/unit/wirebroker/api/test_request_arrays.py",
            "--measure-holds",
            "--nightly",
        ),
        2,
        "the longest event loop turn for large requests; run nothing else at the same time",
    ),
    Step(
        "largest-requests",
        ("benchmarks.scenarios.largest_requests",),
        10,
        "the largest requests of each kind: the delay of another client, and the memory",
        nights=3,
    ),
    Step(
        "lockstep",
        _tests("compat_tests/lockstep", "--seed", "random", "--lockstep-steps", "5000"),
        10,
        "5,000 random steps of each kind sent to both brokers; the responses are compared",
    ),
    Step(
        "crashes",
        _tests("tests/crash", "--seed", "random", "--crash-points", "12000"),
        12,
        "12,000 crash points of logs, compactions and whole brokers",
    ),
    Step(
        "simulations",
        _tests("tests/simulation", "--seed", "random", "--budget-scale", "30"),
        12,
        "simulated schedules of groups, transactions, power losses and replicas",
    ),
    Step(
        "replicas",
        _tests(
            *("tests/simulation/test_replicas.py", "tests/simulation/test_coordinators.py"),
            *("--seed", "random", "--budget-scale", "60"),
        ),
        12,
        "about 1,000 simulated schedules each of replicas and coordinators on three to five nodes",
    ),
    Step(
        "properties",
        _tests(
            *("tests/property", "tests/java", "--long"),
            *("--seed", "random", "--budget-scale", "10", "-n", "2"),
        ),
        12,
        "many more examples of randomized tests, including messages through Kafka's classes",
    ),
    Step(
        "planted",
        _tests(
            "tests/crash",
            "tests/simulation/test_replicas.py",
            "-k",
            "planted or detects",
            "--nightly",
        ),
        8,
        "planted faults, which the crash tests and the simulation of replicas must find",
        nights=3,
    ),
    Step(
        "packaging",
        _tests(
            *("tests/test_packaging.py", "tests/test_example_projects.py"),
            *("tests/unit/compiling", "--nightly", "-n", "2"),
        ),
        8,
        "wheels, installs, a dry run of a release, and the example projects",
        nights=3,
    ),
    Step(
        "churn",
        _tests("compat_tests/transactions/test_churn.py", "--eos-records", "500000"),
        8,
        "500,000 records through three chained stages under churn",
    ),
    Step(
        "kills",
        _tests(
            "compat_tests/faults/test_kills.py",
            "compat_tests/transactions/test_java_kills.py",
            *("--kills", "100", "--seed", "random"),
        ),
        5,
        "a hundred kills of brokers under load",
    ),
    Step(
        "cluster",
        _tests(
            "compat_tests/cluster/nightly_coordinators.py",
            "compat_tests/cluster/nightly_replication.py",
            *("--long", "--seed", "random"),
        ),
        12,
        "each node of three-node clusters is killed, frozen and restarted while clients run",
    ),
    Step(
        "cluster-controllers",
        _tests(
            "compat_tests/cluster/nightly_controllers.py",
            "compat_tests/cluster/nightly_directories.py",
            "--long",
        ),
        5,
        "controllers are killed and frozen under load; brokers start without a directory",
        nights=3,
    ),
    Step(
        "upgrade",
        _tests("compat_tests/cluster/nightly_upgrade.py", "--long"),
        3,
        "a cluster of an earlier version is upgraded node by node under load, then downgraded",
    ),
    Step(
        "logins",
        _tests(
            "compat_tests/security/kerberos/nightly_kerberos.py",
            "compat_tests/security/kerberos/nightly_kerberos_cluster.py",
            "compat_tests/security/kerberos/nightly_kerberos_names.py",
            "compat_tests/security/kerberos/nightly_kerberos_times.py",
            "compat_tests/security/tokens/nightly_signed_tokens.py",
            "compat_tests/security/tokens/nightly_tokens.py",
            "--long",
        ),
        6,
        "every client with Kerberos and a real KDC; signed tokens; tokens moved between brokers",
        nights=3,
    ),
    Step(
        "tls",
        _tests(
            "compat_tests/security/nightly_key_stores.py",
            "compat_tests/security/nightly_mechanisms.py",
            "compat_tests/security/nightly_other_clients.py",
            "compat_tests/security/nightly_rust.py",
            "compat_tests/security/test_protected_clients.py",
            "--nightly",
        ),
        10,
        "keystores of both kinds; every client with each mechanism over TLS, on both brokers",
        nights=3,
    ),
    Step(
        "transcripts",
        _tests("tests/transcripts", "--broker", "apache"),
        7,
        "Apache Kafka still responds as recorded",
        nights=7,
    ),
    Step(
        "transcripts-4.3",
        _tests("tests/transcripts", "--broker", "apache"),
        7,
        "Apache Kafka 4.3.1 responds as recorded, except for listed differences",
        kafka="4.3.1",
    ),
    Step(
        "transcripts-of-4.3",
        _tests("tests/transcripts"),
        2,
        "the transcripts on a broker with the features of 4.3",
        kafka="4.3.1",
    ),
    Step(
        "twin",
        ("compat_tests.twin",),
        1,
        "a file-by-file comparison of both brokers' data directories",
    ),
    Step(
        "interchange",
        _tests("compat_tests/interchange", "--nightly"),
        8,
        "both brokers use one data directory in turns, in either order, after any kind of stop",
    ),
    Step(
        "groups",
        _tests("compat_tests/groups", "--nightly"),
        8,
        "groups of every client with each of its assignors, of rust-rdkafka, and mixed groups",
    ),
    Step(
        "kafka-4.3",
        _tests(
            *("compat_tests/interchange", "compat_tests/cluster", "compat_tests/lockstep"),
            *("compat_tests/reference", "--long"),
        ),
        20,
        "comparisons with Apache Kafka 4.3.1: directories, clusters, responses, tables",
        kafka="4.3.1",
    ),
    Step(
        "apache",
        _tests("compat_tests", "--nightly", "--broker", "apache", "-n", "2"),
        20,
        "the client tests against Apache Kafka, which must also pass them",
        nights=7,
    ),
    Step(
        "apache-spark",
        _tests("spark_it", "--nightly", "--broker", "apache"),
        20,
        "the pipeline tests against Apache Kafka",
        nights=7,
    ),
    Step(
        "spark-4.3",
        _tests("spark_it", "--nightly"),
        15,
        "the pipeline tests on a broker with the features of 4.3",
        kafka="4.3.1",
        nights=3,
    ),
    Step(
        "apache-spark-4.3",
        _tests("spark_it", "--nightly", "--broker", "apache"),
        20,
        "the pipeline tests against Apache Kafka 4.3.1",
        kafka="4.3.1",
        nights=7,
    ),
    Step(
        "monitoring",
        _tests("compat_tests/monitoring", "--long"),
        5,
        "Prometheus and kafka_exporter read the metrics that dashboards need from a broker",
    ),
    *(
        Step(
            f"kafka-own-{part}",
            ("compat_tests.kafka_own", "--part", f"{part}/5"),
            18,
            f"Apache Kafka's own integration tests, part {part} of 5",
            nights=3,
        )
        for part in range(1, 6)
    ),
    Step(
        "clients-suites", ("compat_tests.suites",), 5, "client libraries' own test suites", nights=3
    ),
    Step(
        "security-suites",
        ("compat_tests.suites", "--security"),
        6,
        "librdkafka's own ACL tests, and all of kafka-python's own tests",
        nights=3,
    ),
    Step(
        "login-suites",
        ("compat_tests.suites", "--login"),
        8,
        "most of librdkafka's own tests, over SASL_SSL with logins that expire",
        nights=3,
    ),
    Step(
        "cluster-suites",
        ("compat_tests.suites", "--broker", "cluster"),
        5,
        "client libraries' own test suites against a cluster of three",
        nights=3,
    ),
    Step(
        "cluster-transcripts",
        _tests("compat_tests/cluster/nightly_transcripts.py", "--long"),
        6,
        "the transcripts on a cluster member whose controller is another process",
        nights=3,
    ),
    Step("spark", ("spark_it.suites.run",), 4, "Spark's own suites: the five that take a minute"),
    Step(
        "spark-others",
        ("spark_it.suites.run", *_SPARKS_OTHER_SUITES),
        12,
        "Spark's own suites: six more",
        nights=3,
    ),
    Step(
        "spark-jobs",
        _tests("spark_it", "--nightly"),
        20,
        "all pipeline tests",
    ),
    Step(
        "spark-connector",
        _tests(
            "spark_it/connector/nightly_connector.py",
            "spark_it/connector/nightly_secured.py",
            "--long",
        ),
        4,
        "the connector's other read modes, lost data, deleted topics; SASL_SSL with SCRAM",
    ),
    Step(
        "spark-connector-apache",
        _tests("spark_it/connector/nightly_connector.py", "--long", "--broker", "apache"),
        4,
        "the connector tests with Apache Kafka",
        nights=7,
    ),
    Step(
        "spark-rows",
        _tests("spark_it/directories/nightly_rows.py", "--long", "--seed", "random"),
        3,
        "the data source returns the same rows of random topics as the connector",
    ),
    Step(
        "spark-rows-apache",
        _tests(
            "spark_it/directories/nightly_rows.py",
            "--long",
            "--seed",
            "random",
            "--broker",
            "apache",
        ),
        4,
        "the data source on directories of Apache Kafka",
        nights=7,
    ),
    *(
        Step(
            f"spark-{kind}faults{'-apache' if broker else ''}".replace("_", "-"),
            _tests(f"spark_it/faults/nightly_{kind}faults.py", "--long", *broker),
            15,
            description + (", on Apache Kafka" if broker else ""),
            nights=7 if broker else 3,
        )
        for broker in ((), ("--broker", "apache"))
        for kind, description in _SPARK_FAULTS.items()
    ),
    Step(
        "spark-cluster",
        _tests("spark_it/connector/nightly_cluster.py", "--long"),
        3,
        "Spark streams from a cluster of three while partition leaders are killed",
    ),
    Step(
        "dist",
        ("compiling.release", "--output", ".venv/nightly/dist"),
        3,
        "build the release and try each wheel (run `make .venv/.release-installed` first)",
    ),
)


def due_steps(day: int, steps: tuple[Step, ...] = STEPS) -> list[Step]:
    """Return the steps of a night.

    Args:
        day: The number of the day on which the night begins.
        steps: All steps.
    """
    due: list[Step] = []
    # Steps of the same interval take turns.
    seen: Counter[int] = Counter()
    for step in steps:
        if (day + seen[step.nights]) % step.nights == 0:
            due.append(step)
        seen[step.nights] += 1
    return due


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
