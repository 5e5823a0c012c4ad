"""`make run` takes what is compiled by now, and has the rest made beside."""

from __future__ import annotations

import os
import subprocess

import pytest

from compiling import run
from compiling.tree import ROOT, State
from compiling.wish import VARIABLE


class BecameError(Exception):
    """Stands for the process becoming another."""


@pytest.fixture
def environments():
    """Return what those that were started were given, in turn."""
    return []


@pytest.fixture
def start(monkeypatch, capsys, environments):
    """Return a function that starts and returns (environment, what was said, what was begun)."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    begun: list[list[str]] = []

    def execve(path, arguments, environment):
        raise BecameError(arguments, environment)

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: begun.append(command))

    def started(state, *, missing=None, more=()):
        folder = ROOT / ".venv" / "of-a-test"
        monkeypatch.setattr(run, "state_of", lambda _: state)
        monkeypatch.setattr(run, "what_is_missing", lambda: missing)
        monkeypatch.setattr(run, "_log_of", lambda _: subprocess.DEVNULL)
        with pytest.raises(BecameError) as became:
            run.main(folder, ["serve", "--port", "0", *more])
        arguments, environment = became.value.args
        assert arguments[1:] == ["-P", "-m", "wirebroker", "serve", "--port", "0", *more]
        environments.append(environment)
        return environment.get("PYTHONPATH"), capsys.readouterr().err, begun

    return started


def test_a_compiled_copy_of_the_present_sources_is_taken(start):
    path, said, begun = start(State.COMPILED)
    assert path == str(ROOT / ".venv" / "of-a-test")
    assert said == "wirebroker's build: compiled (.venv/of-a-test)\n"
    assert not begun


def test_else_the_plain_one_starts_and_the_copy_is_made_beside(start):
    path, said, begun = start(State.NONE)
    assert path is None
    assert "plain Python for now" in said
    (command,) = begun
    assert command[-3:-1] == ["-m", "compiling.tree"]


def test_what_has_failed_is_not_tried_again(start):
    path, said, begun = start(State.FAILED)
    assert path is None
    assert "of-a-test/log" in said
    assert not begun


def test_without_a_compiler_one_sentence_says_so(start):
    path, said, begun = start(State.NONE, missing="cc is not installed")
    assert path is None
    assert said.count("\n") == 1
    assert "cc is not installed" in said
    assert not begun


def test_nothing_is_compiled_if_nothing_shall_be(start, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    path, said, begun = start(State.COMPILED)
    assert path is None
    assert "plain Python" in said
    assert not begun


def test_the_compiled_one_is_waited_for_where_one_asks_for_it(monkeypatch):
    made: list[object] = []
    monkeypatch.setattr(run, "make_tree", made.append)
    for state in (State.NONE, State.COMPILED):
        monkeypatch.setattr(run, "state_of", lambda _, state=state: state)
        run._compile_now(ROOT / ".venv" / "of-a-test", None)
    assert made == [ROOT / ".venv" / "of-a-test"]


def test_without_a_compiler_there_is_nothing_to_wait_for(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "what_is_missing", lambda: "there is no C compiler")
    with pytest.raises(SystemExit, match="there is no C compiler"):
        run.main(tmp_path, ["serve"], wait=True)


def test_http_is_served_on_loopback_unless_a_file_or_the_environment_says_what_is(
    start, environments, monkeypatch
):
    name = "KAFKA_WIREBROKER_HTTP_LISTENERS"
    start(State.COMPILED)
    start(State.COMPILED, more=["--config", "server.properties"])
    monkeypatch.setenv(name, "127.0.0.1:1")
    start(State.COMPILED)
    given = [environment.get(name) for environment in environments]
    assert given == ["127.0.0.1:9404", None, "127.0.0.1:1"]
