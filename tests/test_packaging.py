"""Wheel, sdist and editable install give a command that starts a broker (long: fresh installs)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from compiling.modules import compiled_paths
from compiling.tree import make_tree
from tests.project_files import ROOT, copy_of_the_project
from wirebroker import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

READY = "wirebroker ready on "


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a copy of the project: what is built leaves its traces there."""
    return copy_of_the_project(tmp_path_factory.mktemp("packaging") / "source")


@pytest.fixture(scope="module")
def distributions(source):
    """Build the sdist, and the wheel from it."""
    subprocess.run([sys.executable, "-m", "build", str(source)], check=True, capture_output=True)
    return source / "dist"


def install(folder: Path, *what: str) -> Path:
    """Install into a fresh environment and return its folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    commands = folder / "bin"
    pip = [str(commands / "pip"), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, *what], check=True)
    return commands


def assert_it_works(commands: Path, folder: Path, version: str = __version__) -> None:
    """Start the broker away from the checkout and stop it again."""
    for command in ([commands / "wirebroker"], [commands / "python", "-m", "wirebroker"]):
        done = subprocess.run(
            [*command, "--version"], cwd=folder, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"wirebroker {version}\n"
    broker = subprocess.Popen(
        [commands / "wirebroker", "serve", "--port", "0", "--data-dir", "data"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    with broker:
        assert broker.stdout is not None
        line = broker.stdout.readline()
        broker.send_signal(signal.SIGTERM)
        assert line.startswith(READY)
    assert broker.returncode == 0


def test_the_wheel_works(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert_it_works(install(tmp_path / "venv", str(wheel)), tmp_path)


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiling needs a C compiler")
def test_the_compiled_wheel_holds_each_module_twice_and_works(tmp_path):
    wheel = make_tree(ROOT / ".venv" / "compiled")  # where `make test-compiled` takes it from
    assert "-none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for path in compiled_paths():
        assert path in names
        assert path.removesuffix(".py") + sysconfig.get_config_var("EXT_SUFFIX") in names
    assert_it_works(
        install(tmp_path / "venv", str(wheel)), tmp_path, version=f"{__version__} (compiled)"
    )


def test_the_sdist_can_be_compiled(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"setup.py", "compiling/backend.py", "compiling/modules.txt"}
    assert not [name for name in names if name.endswith(".pyc")]  # of modules that the build ran


def test_the_sdist_works(distributions, tmp_path):
    (sdist,) = distributions.glob("*.tar.gz")
    assert_it_works(install(tmp_path / "venv", str(sdist)), tmp_path)


def test_an_editable_install_works(source, tmp_path):
    assert_it_works(install(tmp_path / "venv", "-e", str(source)), tmp_path)


def test_a_checkout_can_be_installed_as_it_is(source, tmp_path):
    assert_it_works(install(tmp_path / "venv", str(source)), tmp_path)
