"""Installation of PySpark, its Kafka connector and a compiler for both, on first use.

They go into `.venv/tools`, unchanged. If Maven's repository lacks the module that the connector
needs (spark-token-provider-kafka-0-10), suites/src/TokenStandIn.scala is compiled instead.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from spark_it.tools import jars
from spark_it.tools.jars import Jar
from tests.support.tools import tools
from tests.support.tools.tools import PROJECT, ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Packages of `pip install 'wirebroker[spark]'`.
_PROJECT_TABLE = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
_PACKAGES = {
    re.split(r"[<>=]", requirement)[0]: requirement
    for requirement in _PROJECT_TABLE["optional-dependencies"]["spark"]
}
SPARK_PACKAGE = _PACKAGES["pyspark"]
# PySpark and the connector must have the same version
SPARK_VERSION = SPARK_PACKAGE.partition("==")[2]
SCALA_VERSION = "2.13"
ARROW_PACKAGE = _PACKAGES["pyarrow"]
PANDAS_PACKAGE = _PACKAGES["pandas"]  # needed by PySpark to pass Arrow batches to Python
PLOT_PACKAGE = "matplotlib>=3.8,<4"  # for the guide's pictures
SPARK = "org.apache.spark"
SOURCES = PROJECT / "spark_it" / "suites" / "src"

CONNECTOR = (
    Jar(SPARK, f"spark-sql-kafka-0-10_{SCALA_VERSION}", SPARK_VERSION, alone=True),
    # From the connector's POM, without jars that PySpark has.
    Jar("org.apache.kafka", "kafka-clients", "3.9.2", alone=True),
    Jar("org.apache.commons", "commons-pool2", "2.13.1", alone=True),
)
TOKEN_MODULE = f"spark-token-provider-kafka-0-10_{SCALA_VERSION}"
TOKEN = (Jar(SPARK, TOKEN_MODULE, SPARK_VERSION, alone=True),)

_VECTOR_MODULE = "jdk.incubator.vector"


@cache
def pyspark_folder() -> Path:
    """Return the folder of PySpark, for PYTHONPATH or sys.path."""
    name = f"pyspark-{SPARK_VERSION}"
    return tools._installed(name, lambda folder: tools._pip_install(SPARK_PACKAGE, folder))


@cache
def arrow_folder() -> Path:
    """Return the folder of PyArrow."""
    return tools._installed("pyarrow", lambda folder: tools._pip_install(ARROW_PACKAGE, folder))


@cache
def pandas_folder() -> Path:
    """Return the folder of pandas."""
    return tools._installed("pandas", lambda folder: tools._pip_install(PANDAS_PACKAGE, folder))


@cache
def plot_folders() -> list[str]:
    """Return the folders of matplotlib, if Python lacks it."""
    if importlib.util.find_spec("matplotlib"):
        return []
    install = functools.partial(tools._pip_install, PLOT_PACKAGE)
    return [str(tools._installed("matplotlib", install))]


def spark_jars() -> Path:
    return pyspark_folder() / "pyspark" / "jars"


@cache
def connector_jars() -> list[Path]:
    name = f"spark-connector-{SPARK_VERSION}"
    folder = tools._installed(name, _install_connector)
    return sorted(folder.glob("*.jar"))


@cache
def java_home() -> Path:
    """Return a JAVA_HOME that Spark starts with.

    Spark requests an incubator module that slim Java runtimes lack. For those, `java` in this home
    is a script that omits the request.
    """
    java = tools.java_command()
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True)
    if _VECTOR_MODULE not in modules.stdout:
        return tools._installed("spark-java", _install_java_wrapper)
    settings = [java, "-XshowSettings:properties", "-version"]
    printed = subprocess.run(settings, capture_output=True, text=True, check=True).stderr
    match = re.search(r"^\s*java\.home = (.+)$", printed, re.MULTILINE)
    assert match, printed
    return Path(match[1])


def compile_scala(sources: Sequence[Path], folder: Path, class_path: Sequence[Path]) -> None:
    """Compile Scala sources into a folder, against PySpark's jars and these."""
    compiler = [tools.java_command(), "-Xmx768m", "-Xss4m", "-cp", f"{spark_jars()}/*"]
    full_class_path = [*class_path, *sorted(spark_jars().glob("*.jar"))]
    command = [*compiler, "scala.tools.nsc.Main", "-nowarn", "-d", str(folder)]
    tools._run([*command, "-cp", ":".join(map(str, full_class_path)), *map(str, sources)])


def fetch_jars(requested: Sequence[Jar], folder: Path) -> None:
    """Fetch jars into a folder."""
    jars.fetch(requested, folder, java=tools.java_command(), ivy_jars=spark_jars())


def fetch_optional_jars(requested: Sequence[Jar], folder: Path) -> bool:
    """Fetch jars if the repository has them; return whether it has."""
    trial = folder / "trial"
    trial.mkdir()
    try:
        fetch_jars(requested, trial)
    except ToolError:
        return False
    else:
        for jar in trial.glob("*.jar"):
            jar.rename(folder / jar.name)
        return True
    finally:
        shutil.rmtree(trial)


def _install_connector(folder: Path) -> None:
    fetch_jars(CONNECTOR, folder)
    if fetch_optional_jars(TOKEN, folder):
        return
    classes = folder / "classes"
    classes.mkdir()
    compile_scala([SOURCES / "TokenStandIn.scala"], classes, sorted(folder.glob("*.jar")))
    with zipfile.ZipFile(folder / "token-stand-in.jar", "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    shutil.rmtree(classes)


def _install_java_wrapper(folder: Path) -> None:
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for one; do\n"
        "  shift\n"
        f'  [ "$one" = --add-modules={_VECTOR_MODULE} ] || set -- "$@" "$one"\n'
        "done\n"
        f'exec "{tools.java_command()}" "$@"\n'
    )
    script.chmod(0o755)
