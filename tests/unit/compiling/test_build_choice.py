"""What a build compiles, depending on the variable and the machine."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import sysconfig

import pytest

from compiling.build_choice import TAKES, VARIABLE, BuildChoice, what_is_missing, wish
from compiling.tree import ROOT

NOTHING = BuildChoice(c=False, modules=False, must=False)


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with a compiler and Python's headers, and no explicit request."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("CC", "true -pipe")
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    return tmp_path


def test_by_default_compiling_is_attempted_and_optional():
    assert wish() == BuildChoice(c=True, modules=True, must=False)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("1", BuildChoice(c=True, modules=True, must=True)),
        ("c", BuildChoice(c=True, modules=False, must=True)),
        ("0", NOTHING),
    ],
)
def test_environment_variable_decides_what_is_compiled(monkeypatch, value, wanted):
    monkeypatch.setenv(VARIABLE, value)
    assert wish() == wanted


def test_invalid_value_is_refused_listing_valid_ones(monkeypatch):
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(SystemExit, match=r"WIREBROKER_COMPILE=yes: use 1 .* c .* or 0"):
        wish()


def test_without_a_compiler_nothing_is_compiled_unless_it_was_asked_for(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert wish() == NOTHING
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(SystemExit, match=r"needs a C compiler: no-such-compiler is not installed"):
        wish()


def test_without_python_headers_nothing_is_compiled(machine):
    (machine / "Python.h").unlink()
    assert wish() == NOTHING
    assert "headers" in (what_is_missing() or "")


_ANNOUNCING = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY)
from compiling.build_choice import BuildChoice, announce
announce(BuildChoice(c=True, modules=sys.argv[1] == "True", must=False))
"""


@pytest.mark.parametrize("compiles", [True, False])
def test_a_build_that_compiles_prints_its_time_and_how_to_skip_it(compiles):
    terminal, side = pty.openpty()
    command = [sys.executable, "-c", _ANNOUNCING, str(compiles)]
    # Other output is hidden, as by pip.
    hidden = subprocess.DEVNULL
    subprocess.run(command, stdin=side, stderr=hidden, cwd=ROOT, start_new_session=True, check=True)
    os.write(side, b"end")
    os.close(side)
    printed = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert (TAKES in printed) is compiles
    assert (f"{VARIABLE}=0" in printed) is compiles
