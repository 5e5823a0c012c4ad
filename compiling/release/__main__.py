"""`make dist`: build a release's files and test each wheel.

    python -m compiling.release [--output dist] [--final]

Builds an sdist, a pure wheel, a compiled wheel for each CPython with headers on PATH, a CycloneDX
bill of materials, and SHA256SUMS, from the files in git. Each wheel is tested in a clean
environment without a network.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compiling.build_choice import what_is_missing
from compiling.release.broker_client import TrialError
from compiling.release.changelog import check_changelog, version_of
from compiling.release.checksums import SUMS, sums_of
from compiling.release.interpreters import Interpreter, interpreters
from compiling.release.wheels import (
    build_compiled_wheel,
    build_pure_wheel,
    build_sdist,
    fetch_needed,
    try_wheel,
)
from compiling.tree import ROOT, copy_project

if TYPE_CHECKING:
    from collections.abc import Callable

Made = TypeVar("Made")


def main(output: Path, *, final: bool) -> None:
    """Build the release's files.

    Raises:
        ValueError: CHANGELOG.md does not describe this version.
        TrialError: A wheel does not work.
        subprocess.CalledProcessError: A build failed.
    """
    version = version_of(ROOT)
    check_changelog((ROOT / "CHANGELOG.md").read_text("utf-8"), version, final=final)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        copy_project(work / "source")
        sdist = _timed("sdist", lambda: build_sdist(work / "source", output))
        own, *others = sorted(
            interpreters(), key=lambda interpreter: interpreter.version != _running()
        )
        pure = _timed("pure wheel", lambda: build_pure_wheel(sdist, output))
        environment = _tried(pure, own, work, version)
        _timed("bill of materials", lambda: _bill_of_materials(environment, output, version))
        for interpreter in (own, *others):
            _compiled(interpreter, sdist, output, work, version)
    sums = sums_of(output)
    (output / SUMS).write_text(sums, encoding="ascii")
    _say(f"{len(sums.splitlines())} files and their {SUMS} in {output}")


def _running() -> tuple[int, ...]:
    return tuple(sys.version_info[:3])


def _compiled(
    interpreter: Interpreter, sdist: Path, output: Path, work: Path, version: str
) -> None:
    missing = what_is_missing()
    if missing is not None:
        _say(f"no compiled wheel for {interpreter.abi}: {missing}")
        return
    wheel = _timed(
        f"compiled wheel for {interpreter.abi}",
        lambda: build_compiled_wheel(interpreter, sdist, output),
    )
    _tried(wheel, interpreter, work, f"{version} (compiled)")


def _tried(wheel: Path, interpreter: Interpreter, work: Path, version: str) -> Path:
    needed = work / f"needed-{interpreter.abi}"
    environment = work / f"environment-{wheel.name}"
    if not needed.exists():
        _timed(f"packages for {interpreter.abi}", lambda: fetch_needed(wheel, interpreter, needed))
        for own in needed.glob("wirebroker-*.whl"):
            own.unlink()
    _timed(
        f"trial of {wheel.name}",
        lambda: try_wheel(wheel, interpreter, needed, environment, says=f"wirebroker {version}"),
    )
    return environment


def _bill_of_materials(environment: Path, output: Path, version: str) -> None:
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--of", "JSON"]
    pyproject = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    file = output / f"wirebroker-{version}.cdx.json"
    subprocess.run(
        [*command, *pyproject, "--output-file", str(file), str(environment / "bin" / "python")],
        check=True,
    )


def _timed(step: str, make: Callable[[], Made]) -> Made:
    _say(f"{step} ...")
    started = time.perf_counter()
    result = make()
    _say(f"{step}: {time.perf_counter() - started:.0f} s")
    return result


def _say(message: str) -> None:
    sys.stderr.write(f"make dist: {message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--final", action="store_true", help="require the version's date")
    arguments = parser.parse_args()
    try:
        main(arguments.output.resolve(), final=arguments.final)
    except (TrialError, ValueError) as error:
        sys.exit(f"make dist: {error}")
