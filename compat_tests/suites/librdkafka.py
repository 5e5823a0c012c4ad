"""librdkafka's own tests against a broker that runs already, unchanged.

Its sources come from the npm package of Confluent's client, which holds librdkafka whole, tests
included; they are compiled on first use, which takes some minutes. RapidJSON, which one test reads
statistics with, comes from the sources of a PyPI package. Java programs of the tests run on
Kafka's jars by a `kafka-run-class.sh` of our own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests import tools_node
from compat_tests.suites.outcomes import Outcome
from tests.support import tools
from tests.support.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE_VERSION = "1.10.1"
PACKAGE = f"@confluentinc/kafka-javascript@{PACKAGE_VERSION}"  # librdkafka 2.15
JSON_PACKAGE = "python-rapidjson==1.25"
# Consumers of what Java and librdkafka wrote in transactions; transactional producers.
TRANSACTION_TESTS = ("0098", "0103")
# What the tests want of a broker.
BROKER_SETTINGS = {"num.partitions": "4"}
LIMIT_S = 300.0  # of one test; 0103 took 60 s on a quiet machine

_PROGRAMS = ("gcc", "g++", "make", "npm")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RESULTS = {"PASSED": "passed", "FAILED": "failed"}


def missing_programs() -> list[str]:
    """Return what PATH lacks of the programs that the suite is built with."""
    return [name for name in _PROGRAMS if not shutil.which(name)]


@cache
def suite_folder() -> Path:
    """Return the folder with the suite: `librdkafka/`, `kafka/`, `bin/`, `single_replica.so`.

    Raises:
        ToolError: A program is missing, or the build failed.
    """
    return tools._installed(f"librdkafka-tests-{PACKAGE_VERSION}", _install)


def run(number: str, bootstrap: str, directory: Path) -> list[Outcome]:
    """Run one test of the suite; its output goes into the directory.

    Args:
        number: Its four digits.
        bootstrap: The broker, or several of a cluster, which then holds as many replicas as the
            tests ask for.
        directory: A folder, made if need be.
    """
    directory.mkdir(parents=True, exist_ok=True)
    settings = directory / "test.conf"
    settings.write_text(f"bootstrap.servers={bootstrap}\ntest.topic.random=true\n")
    folder = suite_folder()
    environment = {
        **_build_environment(folder),
        "TESTS": number,
        "RDKAFKA_TEST_CONF": str(settings),
        "BROKERS": bootstrap,
        "TEST_KAFKA_VERSION": tools.KAFKA_VERSION,
        "LD_LIBRARY_PATH": f"{folder}/librdkafka/src:{folder}/librdkafka/src-cpp",
    }
    if "," not in bootstrap:
        environment["LD_PRELOAD"] = str(folder / "single_replica.so")
    output = directory / f"{number}.txt"
    status = tools.run_logged(
        ["./test-runner", "-L", "-Q", "-p1"],
        output,
        directory=folder / "librdkafka" / "tests",
        limit_s=LIMIT_S,
        environment=environment,
    )
    return _outcomes(number, _COLOURS.sub("", output.read_text(errors="replace")), status)


def _outcomes(number: str, text: str, status: int | None) -> list[Outcome]:
    """Read the table that a run ends with: `| 0103_transactions | PASSED | 41.2s | …`."""
    found: list[Outcome] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or not cells[1].startswith(f"{number}_"):
            continue
        if "negative test flags" not in line:  # left out of this run
            result = _RESULTS.get(cells[2], "skipped")
            found.append(Outcome(cells[1], result, "" if result == "passed" else cells[4]))
    if not found or (status != 0 and not any(one.result == "failed" for one in found)):
        found.append(Outcome(f"{number} as a whole", "failed", f"{status}: {text[-2000:]}"))
    return found


def _install(folder: Path) -> None:
    missing = missing_programs()
    if missing:
        raise ToolError(f"librdkafka's tests are built with {', '.join(missing)}: not on PATH")
    tools._run([*tools_node._npm_command(), "pack", "--silent", PACKAGE], directory=folder)
    (archive,) = folder.glob("*.tgz")
    inner = "package/deps/librdkafka"
    tools._run(["tar", "xf", archive.name, "--strip-components=2", inner], directory=folder)
    archive.unlink()
    _install_rapidjson(folder)
    _write_scripts(folder)
    sources = folder / "librdkafka"
    environment = _build_environment(folder)
    tools._run(["./configure", "--disable-gssapi"], environment, directory=sources)
    tools._run(["make", "-j2", "libs"], environment, directory=sources)
    tools._run(["make", "-j2", "build", "java"], environment, directory=sources / "tests")
    for leftover in [*sources.rglob("*.o"), *sources.rglob("*.a")]:
        leftover.unlink()
    shim = Path(__file__).with_name("single_replica.c")
    library = ["-shared", "-fPIC", "-o", "single_replica.so"]
    tools._run(["gcc", *library, str(shim), "-ldl"], directory=folder)


def _install_rapidjson(folder: Path) -> None:
    """Put the headers into `include/`."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    tools._run([*pip, JSON_PACKAGE], directory=folder)
    (archive,) = folder.glob("*.tar.gz")
    options = ["--strip-components=2", "--wildcards", "*/rapidjson/include"]
    tools._run(["tar", "xf", archive.name, *options], directory=folder)
    archive.unlink()


def _write_scripts(folder: Path) -> None:
    """Make what the tests expect of a Kafka release, and of PATH."""
    jars, java = tools.kafka_jars(), tools.java_command()
    for name in ("kafka/bin", "bin"):
        (folder / name).mkdir(parents=True)
    (folder / "kafka" / "libs").symlink_to(jars)
    options = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    run_class = f'exec {shlex.quote(java)} {options} -cp "$CLASSPATH:{jars}/*"'
    scripts = {
        "kafka/bin/kafka-run-class.sh": f'{run_class} "$@"',
        "kafka/bin/kafka-topics.sh": f'{run_class} org.apache.kafka.tools.TopicCommand "$@"',
        "bin/java": f'exec {shlex.quote(java)} "$@"',
        "bin/javac": f'exec {shlex.join(tools.javac_command())} "$@"',
    }
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def _build_environment(folder: Path) -> Mapping[str, str]:
    return {
        "KAFKA_PATH": str(folder / "kafka"),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "CPPFLAGS": f"-I{folder / 'include'}",
    }
