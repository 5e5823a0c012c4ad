"""`make run` starts the compiled copy if it is current, and never compiles."""

from __future__ import annotations

import os

import pytest

from compiling import run
from compiling.build_choice import VARIABLE
from compiling.tree import ROOT

FOLDER = ROOT / ".venv" / "of-a-test"


class BecameError(Exception):
    """Raised in place of replacing the process."""


@pytest.fixture
def start(monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def execve(path, arguments, environment):
        raise BecameError(arguments, environment)

    monkeypatch.setattr(os, "execve", execve)

    def started(*, is_current, missing=None, extra_arguments=()):
        monkeypatch.setattr(run, "is_current", lambda _: is_current)
        monkeypatch.setattr(run, "what_is_missing", lambda: missing)
        with pytest.raises(BecameError) as became:
            run.main(FOLDER, ["serve", "--port", "0", *extra_arguments])
        arguments, environment = became.value.args
        assert arguments[1:] == ["-P", "-m", "wirebroker", "serve", "--port", "0", *extra_arguments]
        return environment, capsys.readouterr().err

    return started


def test_a_current_compiled_copy_is_started(start):
    environment, printed = start(is_current=True)
    assert environment["PYTHONPATH"] == str(FOLDER)
    assert printed == "wirebroker's build: compiled (.venv/of-a-test)\n"


def test_the_plain_broker_names_the_command_that_compiles_and_its_time(start):
    environment, printed = start(is_current=False)
    assert "PYTHONPATH" not in environment
    assert printed.count("\n") == 1
    assert "`make compiled`" in printed
    assert "minutes" in printed


def test_without_a_compiler_one_line_says_what_to_install(start):
    environment, printed = start(is_current=False, missing="cc is not installed")
    assert "PYTHONPATH" not in environment
    assert printed.count("\n") == 1
    assert "cc is not installed" in printed


def test_environment_variable_selects_plain_python(start, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    environment, printed = start(is_current=True)
    assert "PYTHONPATH" not in environment
    assert "plain Python" in printed


def test_http_listens_on_loopback_unless_configured_otherwise(start, monkeypatch):
    name = "KAFKA_WIREBROKER_HTTP_LISTENERS"
    listeners = [start(is_current=True)[0].get(name)]
    listeners.append(
        start(is_current=True, extra_arguments=["--config", "server.properties"])[0].get(name)
    )
    monkeypatch.setenv(name, "127.0.0.1:1")
    listeners.append(start(is_current=True)[0].get(name))
    assert listeners == ["127.0.0.1:9404", None, "127.0.0.1:1"]
