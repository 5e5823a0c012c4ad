"""`wirebroker profile` and `completion`."""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import sys

import pytest

from wirebroker.cli import main as cli


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Use a settings directory of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WIREBROKER_PROFILE", "WIREBROKER_BOOTSTRAP", "WIREBROKER_CLIENT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "wirebroker"


def said(capsys, *arguments):
    capsys.readouterr()
    status = cli.run([*arguments])
    return status, *capsys.readouterr()


def test_the_profile_in_use_names_the_cluster(verbs, capsys, monkeypatch):
    assert said(capsys, "profile", "set", "here", f"bootstrap.servers={verbs.bootstrap}")[0] == 0
    assert said(capsys, "profile", "set", "gone", "bootstrap.servers=127.0.0.1:1")[0] == 0
    assert said(capsys, "profile", "use", "gone")[0] == 0
    assert said(capsys, "cluster")[0] == 1
    assert said(capsys, "cluster", "-b", verbs.bootstrap)[0] == 0
    assert said(capsys, "profile", "use", "here")[0] == 0
    assert said(capsys, "cluster")[0] == 0
    assert said(capsys, "profile", "list")[1] == "  gone\n* here\n"
    monkeypatch.setenv("WIREBROKER_PROFILE", "gone")
    assert said(capsys, "cluster")[0] == 1
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", verbs.bootstrap)
    assert said(capsys, "cluster")[0] == 0


def test_settings_are_set_and_unset_and_secrets_hidden(capsys, home):
    said(capsys, "profile", "set", "a", "bootstrap.servers=x:1", "ssl.keystore.password=p\\w")
    said(capsys, "profile", "set", "a", "bootstrap.servers=", "client.id=me")
    said(capsys, "profile", "use", "a")
    assert said(capsys, "profile", "show")[1] == "client.id=me\nssl.keystore.password=(hidden)\n"
    (file,) = (home / "profiles").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ssl.keystore.password=p\\\\w" in file.read_text()
    assert said(capsys, "profile", "delete", "a")[0] == 0
    assert said(capsys, "profile", "list")[1] == ""
    assert said(capsys, "profile", "show")[0] == 2


def test_unreadable_profile_choice_is_an_error_not_a_fallback(verbs, capsys, home, monkeypatch):
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", verbs.bootstrap)
    assert said(capsys, "profile", "set", "a", "client.id=me")[0] == 0
    assert said(capsys, "profile", "use", "a")[0] == 0
    opened = builtins.open

    def refuse(file, *args, **kwargs):
        if str(file) == str(home / "current"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return opened(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    status, _, error = said(capsys, "cluster")
    assert (status, error.count("\n")) == (2, 1)
    assert f"{home}/current cannot be read" in error


@pytest.mark.parametrize("name", ["../x", "", ".x", "a/b", "x" * 65])
def test_profile_name_cannot_be_a_path(name, capsys, home):
    assert said(capsys, "profile", "set", name, "a=b")[0] == 2
    assert not home.exists()


def test_invalid_arguments_are_refused(capsys):
    assert said(capsys, "profile", "use", "missing")[0] == 2
    assert said(capsys, "profile", "use")[0] == 2
    assert said(capsys, "profile", "set", "a", "b")[0] == 2
    assert "existing profiles: none" in said(capsys, "profile", "show", "missing")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_for_shells(shell, capsys):
    status, script, _ = said(capsys, "completion", shell)
    assert status == 0
    assert f"_WIREBROKER_COMPLETE={shell}_complete" in script
    environment = os.environ | {"_WIREBROKER_COMPLETE": f"{shell}_complete"}
    words = {"COMP_WORDS": "wirebroker topi", "COMP_CWORD": "1"}
    if shell == "fish":
        words = {"COMP_WORDS": "wirebroker topi", "COMP_CWORD": "topi"}
    code = "import sys; from wirebroker.cli.program import main; sys.argv = ['wirebroker']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | words,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "topic" in done.stdout, done
    assert "kafka-topics" not in done.stdout
