"""Wheel, sdist and editable install yield a working command (long: fresh installs)."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from compiling.build_choice import VARIABLE, what_is_missing
from compiling.modules import compiled_paths
from compiling.tree import make_tree
from tests.support.brokers.installed_broker import assert_it_answers, serving
from tests.support.harness.project_files import ROOT, copy_of_the_project
from tests.support.harness.sources import GENERATED, name_of, python_files
from tests.test_house import PRODUCT
from wirebroker import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

_COMPILES = pytest.mark.skipif(what_is_missing() is not None, reason=what_is_missing() or "")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return copy_of_the_project(tmp_path_factory.mktemp("packaging") / "source")


@pytest.fixture(scope="module")
def distributions(source):
    build = [sys.executable, "-m", "build", str(source)]
    subprocess.run(build, check=True, capture_output=True, env=os.environ | {VARIABLE: "0"})
    return source / "dist"


def install(
    folder: Path, *requirements: str, compiling: str = "0", with_needed: bool = False
) -> Path:
    """Install into a new environment and return its folder of commands.

    Args:
        folder: The environment's.
        requirements: Arguments for pip.
        compiling: What a build compiles (compiling/build_choice.py).
        with_needed: Whether to install dependencies; else this environment's are used.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    commands = folder / "bin"
    needed = [] if with_needed else ["--no-deps"]
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install", "--quiet"]
    subprocess.run(
        [*pip, *needed, *requirements], check=True, env=os.environ | {VARIABLE: compiling}
    )
    if not with_needed:
        (packages,) = (folder / "lib").glob("python*/site-packages")
        # Only a path: it does not expose this environment's editable wirebroker.
        (packages / "of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return commands


def assert_it_works(commands: Path, folder: Path, version: str = __version__) -> None:
    for command in ([commands / "wirebroker"], [commands / "python", "-m", "wirebroker"]):
        done = subprocess.run(
            [*command, "--version"], cwd=folder, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"wirebroker {version}\n"
    with serving([commands / "wirebroker"], folder) as address:
        assert_it_answers(address)


def test_wheel_contains_the_files_of_the_tree(distributions):
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        name if name.startswith("wirebroker/") else f"wirebroker/{name.removeprefix('spark_it/')}"
        for name in map(name_of, [*python_files(*PRODUCT), *GENERATED.glob("*.py")])
    }
    stubs = {
        f"wirebroker/{name}.pyi"
        for name in (
            "base/_histogram",
            "codecs/_hot",
            "net/sockets/_calls",
            "net/pages/_page_threads",
        )
    }
    console = ROOT / "wirebroker" / "console"
    shown = {
        name_of(path) for path in [*console.glob("templates/*.html"), *console.glob("static/*")]
    }
    assert names == expected | stubs | shown | {"wirebroker/py.typed"}


@pytest.mark.nightly
def test_wheel_works_without_kafka_python_and_with_version_2(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    commands = install(tmp_path / "venv", str(wheel), with_needed=True)
    has_kafka = [str(commands / "python"), "-c", "import kafka"]
    assert subprocess.run(has_kafka, cwd=tmp_path, capture_output=True, check=False).returncode == 1
    assert_it_works(commands, tmp_path)
    second_folder = tmp_path / "beside"
    second_folder.mkdir()
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install", "--quiet"]
    subprocess.run([*pip, "kafka-python<3"], check=True)
    subprocess.run(has_kafka, cwd=tmp_path, check=True)
    assert_it_works(commands, second_folder)


@_COMPILES
@pytest.mark.nightly
def test_the_compiled_wheel_holds_each_module_twice_and_works(tmp_path):
    wheel = make_tree(ROOT / ".venv" / "compiled")  # created by `make test-compiled`
    assert "-none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for path in compiled_paths():
        assert path in names
        assert path.removesuffix(".py") + sysconfig.get_config_var("EXT_SUFFIX") in names
    assert_it_works(
        install(tmp_path / "venv", str(wheel)), tmp_path, version=f"{__version__} (compiled)"
    )


@pytest.mark.nightly
def test_the_sdist_can_be_compiled(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"setup.py", "compiling/backend.py", "compiling/modules.txt"}
    assert not [name for name in names if name.endswith(".pyc")]  # of modules that the build ran


@pytest.mark.nightly
def test_the_sdist_can_be_built_without_kafka_python(distributions, tmp_path):
    (sdist,) = distributions.glob("*.tar.gz")
    subprocess.run(["tar", "xf", str(sdist)], cwd=tmp_path, check=True)
    (folder,) = tmp_path.iterdir()
    ask = "from compiling.messages.build import requirements; print(requirements())"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@_COMPILES
@pytest.mark.nightly
def test_sdist_works_and_can_compile_only_c(distributions, tmp_path):
    (sdist,) = distributions.glob("*.tar.gz")
    commands = install(tmp_path / "venv", str(sdist), compiling="c")
    assert_it_works(commands, tmp_path)
    extensions = {path.name.partition(".")[0] for path in (tmp_path / "venv").rglob("*.so")}
    assert {"_histogram", "_hot", "_calls", "_page_threads"} <= extensions
    assert "frames" not in extensions


@pytest.mark.nightly
def test_an_editable_install_works(source, tmp_path):
    assert_it_works(install(tmp_path / "venv", "-e", str(source)), tmp_path)


@_COMPILES
@pytest.mark.nightly
def test_modules_that_cannot_be_compiled_stay_python(tmp_path, monkeypatch):
    source = copy_of_the_project(tmp_path / "source")  # nothing has been built there yet
    modules = source / "compiling" / "modules.txt"
    modules.write_text("wirebroker/codecs/errors.py\n")  # compiling all takes a minute
    monkeypatch.setenv("CC", "false")
    monkeypatch.delenv(VARIABLE, raising=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "wheel", "--verbose", "--no-deps", "--wheel-dir", str(tmp_path), str(source)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "this build is plain Python" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
    assert_it_works(install(tmp_path / "venv", str(wheel)), tmp_path)
