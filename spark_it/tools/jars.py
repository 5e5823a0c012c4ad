"""Jars from Maven's central repository, by Maven if it is on PATH, else by Ivy.

Maven uses the mirror that the user has configured; Ivy, one of PySpark's jars, its public default.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.support.tools.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class Jar(NamedTuple):
    """A jar of the repository; `alone` excludes its dependencies."""

    group: str
    name: str
    version: str
    classifier: str = ""
    alone: bool = False

    @property
    def file_name(self) -> str:
        dashed = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{dashed}.jar"


def fetch(requested: Sequence[Jar], folder: Path, *, java: str, ivy_jars: Path) -> None:
    """Copy jars and their runtime dependencies into an existing folder.

    `java` runs Ivy, whose jar is in the folder `ivy_jars`.

    Raises:
        ToolError: The repository lacks a jar or cannot be reached.
    """
    maven = shutil.which("mvn")
    if maven:
        _by_maven(maven, requested, folder)
    else:
        _by_ivy(requested, folder, java=java, ivy_jars=ivy_jars)
    missing = [jar.file_name for jar in requested if not (folder / jar.file_name).is_file()]
    if missing:
        raise ToolError(f"not in Maven's central repository: {', '.join(missing)}")


_POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>tools</groupId><artifactId>tools</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""


def _by_maven(maven: str, requested: Iterable[Jar], folder: Path) -> None:
    project = folder / "pom.xml"
    project.write_text(_POM.format("".join(map(_maven_dependency, requested))))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    _run([maven, "-q", "-B", "-f", str(project), *goal])
    project.unlink()


def _maven_dependency(jar: Jar) -> str:
    text = f"<groupId>{jar.group}</groupId><artifactId>{jar.name}</artifactId>"
    text += f"<version>{jar.version}</version>"
    if jar.classifier:
        text += f"<classifier>{jar.classifier}</classifier>"
    if jar.alone:
        excluded_all = "<groupId>*</groupId><artifactId>*</artifactId>"
        text += f"<exclusions><exclusion>{excluded_all}</exclusion></exclusions>"
    return f"<dependency>{text}</dependency>"


_IVY = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="tools" module="tools"/>
<configurations><conf name="default"/></configurations>
<dependencies>{}</dependencies></ivy-module>
"""


def _by_ivy(requested: Iterable[Jar], folder: Path, *, java: str, ivy_jars: Path) -> None:
    module = folder / "ivy.xml"
    module.write_text(_IVY.format("".join(map(_ivy_dependency, requested))))
    cache = folder / "cache"
    pattern = f"{folder}/[artifact]-[revision](-[classifier]).[ext]"
    _run(
        [
            *(java, "-Xmx256m", "-cp", f"{ivy_jars}/*", "org.apache.ivy.Main"),
            *("-ivy", str(module), "-cache", str(cache), "-types", "jar", "bundle", "test-jar"),
            *("-retrieve", pattern),
        ]
    )
    module.unlink()
    shutil.rmtree(cache)


def _ivy_dependency(jar: Jar) -> str:
    # For a POM, Ivy's "master" is its jar, "default" also the runtime scope.
    text = f'<dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}"'
    text += f' conf="default->{"master" if jar.alone else "default"}"'
    if jar.alone:
        text += ' transitive="false"'
    if not jar.classifier:
        return text + "/>"
    artifact = f'<artifact name="{jar.name}" type="jar" ext="jar" m:classifier="{jar.classifier}"/>'
    return f"{text}>{artifact}</dependency>"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        last_words = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise ToolError(f"{command[0]} ended with status {done.returncode}:\n{last_words}")
