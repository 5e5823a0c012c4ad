"""Apache Kafka's published integration tests: their jars, class names, and how to run a class.

Kafka's test library starts a cluster's nodes inside the JVM. The classes in `java/` precede it on
the class path and start each node as a process instead (`Nodes.java`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from compat_tests.kafka_own.reports import outcomes_in, outcomes_in_feed
from tests.support.tools import java_programs, tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.suites.outcomes import Outcome

# The newest version whose test jars can be compiled against; brokers of 4.4 pass the tests, too.
KAFKA_VERSION: Final = "4.3.1"
APACHE: Final = "kafka"
# Each cluster gets as many controllers as its test asks for.
MOST_CONTROLLERS: Final = 99
_FOLDER: Final = Path(__file__).parent
_CLUSTER_TESTS: Final = (
    *(
        f"org/apache/kafka/common/test/api/{name};".encode()
        for name in ("ClusterTest", "ClusterTests", "ClusterTemplate")
    ),
    b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster",
)
_CLASS_S: Final = 1500
_TEST_S: Final = 120
# A class runs too short for optimized code to pay.
_JVM: Final = ("-Xmx700m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Broker(NamedTuple):
    """The broker under test.

    Attributes:
        command: The `wirebroker` program, or APACHE.
        protocols: "classic": tests for all group protocols use only that one; "": all.
        controllers: Maximum number of controllers in a cluster.
    """

    command: str
    protocols: str
    controllers: int


def own_command() -> str:
    return str(Path(sys.executable).parent / "wirebroker")


def environment() -> dict[str, str]:
    """Return variables by which `own_command` runs this tree, not the installed sources."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(tools.PROJECT), *([inherited] if inherited else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def missing_program() -> str | None:
    return next((name for name in ("mvn", "java", "javac") if shutil.which(name) is None), None)


@cache
def jars() -> Path:
    """Return the folder with the tests and their dependencies, from Maven's central repository."""

    def install(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        project = ["-f", str(_FOLDER / "pom.xml"), f"-Dkafka.version={KAFKA_VERSION}"]
        tools._run(["mvn", "-q", "-B", *project, *goal, f"-DoutputDirectory={folder}"])

    project_hash = hashlib.sha256((_FOLDER / "pom.xml").read_bytes()).hexdigest()[:12]
    return tools._installed(f"kafka-own-{KAFKA_VERSION}-{project_hash}", install)


def class_names() -> list[str]:
    names: list[str] = []
    for jar in sorted(jars().glob("*-test.jar")):
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                simple = entry.rpartition("/")[2]
                is_test = simple.endswith("Test.class") and "$" not in simple
                is_test = is_test and not simple.startswith("Abstract")
                if is_test and any(mark in archive.read(entry) for mark in _CLUSTER_TESTS):
                    names.append(entry.removesuffix(".class").replace("/", "."))
    return sorted(names)


def run_class(name: str, broker: Broker, output: Path, methods: str = ".*") -> list[Outcome]:
    """Run the tests of a class and return their outcomes.

    Args:
        name: The name of the class.
        broker: The broker to test.
        output: A folder for the reports and Java's output (`NAME.log`).
        methods: A pattern for the names of the methods to run.
    """
    reports = output / name
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    feed = output / f"{name}.log"
    with feed.open("wb") as log:
        process = subprocess.Popen(
            _command(name, broker, reports, methods),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(_CLASS_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # Java's group includes the nodes of an unfinished test.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return outcomes_in(name, reports) or outcomes_in_feed(name, feed.read_text(errors="replace"))


def _command(name: str, broker: Broker, reports: Path, methods: str) -> Sequence[str]:
    kafka = f"{jars()}/*"
    is_apache = broker.command == APACHE
    stand_ins = java_programs.compiled("kafka-own", _FOLDER / "java", jars())
    properties = {
        "kit.broker": broker.command,
        # Kafka's own nodes have the version that wirebroker's are compared with.
        "kit.java.classpath": f"{tools.kafka_jars()}/*" if is_apache else kafka,
        "kit.controllers": str(broker.controllers),
        "kit.tails": "true",
        "org.slf4j.simpleLogger.defaultLogLevel": "off",
    }
    if broker.protocols:
        properties["kit.protocols"] = broker.protocols
    settings = {
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.default": f"{_TEST_S}s",
    }
    return [
        *("java", *_JVM, *(f"-D{key}={value}" for key, value in properties.items())),
        *("-cp", f"{stand_ins}{os.pathsep}{kafka}"),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "-c", name),
        *("--include-classname", ".*", "--include-methodname", f".*#({methods})"),
        *("--disable-banner", "--disable-ansi-colors"),
        *("--details=testfeed", f"--reports-dir={reports}"),
        *(part for key, value in settings.items() for part in ("--config", f"{key}={value}")),
    ]
