"""Programs in four languages that start an image by testcontainers' own Kafka classes.

    program IMAGE VARIANT     prints "started HOST:PORT" when the class says so, stops at a line

Their packages are installed from the registries on first use, into `.venv/tools`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.support import tools_go, tools_node
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
JAVA_JARS = ("org.testcontainers:testcontainers-kafka:2.0.2", "org.slf4j:slf4j-simple:1.7.36")
# For pulling, linking and starting on a busy machine.
START_S = 120
# The programs stop their containers, because not every machine can pull the reaper's image.
ENVIRONMENT = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1"}


@contextlib.contextmanager
def started(language: str, image: str, variant: str) -> Iterator[str]:
    """Start an image with a testcontainers class; yield its bootstrap address.

    Args:
        language: "python", "java", "go" or "node".
        image: With its tag, which some classes parse.
        variant: Another argument of the program.
    """
    command, environment = PROGRAMS[language]()
    with subprocess.Popen(
        [*command, image, variant],
        env={**os.environ, **ENVIRONMENT, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        timer = threading.Timer(START_S, program.kill)
        timer.start()
        assert program.stdout is not None
        line = program.stdout.readline()
        if not line.startswith("started "):
            program.kill()
            output, errors = program.communicate()
            raise AssertionError(f"not started: {line}{output}{errors}")
        try:
            yield line.split()[1]
        finally:
            _, errors = program.communicate("\n", timeout=START_S)
            timer.cancel()
    assert program.returncode == 0, errors


def _python() -> tuple[list[str], dict[str, str]]:
    return [sys.executable, str(HERE / "python" / "start.py")], {}


def _go() -> tuple[list[str], dict[str, str]]:
    name = f"go-containers-{tools.sources_hash(HERE / 'go')}"
    return [str(tools._installed(name, _build_go) / "startcontainers")], {}


def _build_go(folder: Path) -> None:
    environment = {
        "GOMODCACHE": str(tools.TOOLS / "go-modules"),
        "GOCACHE": str(tools.TOOLS / "go-cache"),
        "GOFLAGS": "-modcacherw -mod=readonly",
    }
    build = [tools_go.go_command(), "build", "-trimpath", "-o", f"{folder}/startcontainers", "."]
    tools._run(build, environment, directory=HERE / "go")


def _node() -> tuple[list[str], dict[str, str]]:
    listed = (HERE / "node" / "package.json").read_bytes()
    name = f"node-containers-{hashlib.sha256(listed).hexdigest()[:12]}"
    packages = tools._installed(name, _install_node_packages) / "node_modules"
    program = [tools_node.node_command(), str(HERE / "node" / "start.cjs")]
    return program, {"NODE_PATH": str(packages), "NODE_NO_WARNINGS": "1"}


def _install_node_packages(folder: Path) -> None:
    shutil.copy(HERE / "node" / "package.json", folder)
    tools_node.install_packages(folder)


def _java() -> tuple[list[str], dict[str, str]]:
    name = f"java-containers-{tools.sources_hash(HERE / 'java')}"
    jars = tools._installed("testcontainers-kafka", _install_jars)
    classes = tools._installed(name, _compile_java)
    version = engine_output("version", "--format", "{{.Server.APIVersion}}")
    options = [f"-Dapi.version={version}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    class_path = os.pathsep.join([f"{jars}/*", str(classes)])
    return [tools.java_command(), *options, "-cp", class_path, "StartContainer"], {}


def _install_jars(folder: Path) -> None:
    tools._install_jars(JAVA_JARS, folder)


def _compile_java(folder: Path) -> None:
    jars = sorted(tools._installed("testcontainers-kafka", _install_jars).glob("*.jar"))
    class_path = os.pathsep.join(map(str, jars))
    source = str(HERE / "java" / "StartContainer.java")
    tools._run([*tools.javac_command(), "-d", str(folder), "-cp", class_path, source])


PROGRAMS = {"python": _python, "go": _go, "node": _node, "java": _java}


def engine_output(*arguments: str) -> str:
    done = subprocess.run(
        [os.environ.get("ENGINE", "docker"), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
