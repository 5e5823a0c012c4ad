"""The console of deploy/compose/console.yaml, started without an engine."""

from __future__ import annotations

import re
import ssl
import subprocess
import urllib.request
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from tests.container.start_scripts import environment_of, image_at
from tests.support.harness.project_files import ROOT
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = ROOT / "deploy" / "compose" / "console.yaml"
WAIT_S: Final = 60


def arguments() -> list[str]:
    """Return the arguments of the console's script in the compose file."""
    (command,) = re.findall(r"^ +command: \[(.*)\]$", FILE.read_text(), re.MULTILINE)
    script, *words = re.findall(r'"([^"]*)"', command)
    assert script == "/etc/kafka/docker/console"
    return words


@contextmanager
def started(root: Path, port: int, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = environment_of(root, {"CONSOLE_FOLDER": str(root / "console"), **variables})
    with (root / "log").open("ab") as log:
        process = subprocess.Popen(
            [root / "etc/kafka/docker/console", *arguments(), "--port", str(port)],
            cwd=root / "work",
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def is_ready(root: Path, port: int) -> bool:
    return f":{port}/ " in (root / "log").read_text()


def login_page(root: Path, port: int) -> str:
    context = ssl.create_default_context(cafile=root / "console" / "tls" / "ca.pem")
    with urllib.request.urlopen(f"https://localhost:{port}/", context=context) as response:
        assert response.status == 200
        text: str = response.read().decode()
        return text


@pytest.mark.long
def test_the_console_asks_for_a_login_over_tls_and_keeps_its_users(tmp_path: Path) -> None:
    root = image_at(tmp_path)
    users, certificate = root / "console" / "users", root / "console" / "tls" / "broker.pem"
    port = free_port()
    with started(root, port, CONSOLE_PASSWORD="a long password"):
        eventually(partial(is_ready, root, port), timeout_s=WAIT_S)
        assert 'name="password"' in login_page(root, port)
    kept = users.read_text(), certificate.read_text()
    assert kept[0].startswith("admin:$argon2id$")
    # The password is needed once.
    (root / "log").write_text("")
    with started(root, port):
        eventually(partial(is_ready, root, port), timeout_s=WAIT_S)
        assert 'name="password"' in login_page(root, port)
    assert (users.read_text(), certificate.read_text()) == kept


@pytest.mark.long
def test_the_first_start_needs_a_password(tmp_path: Path) -> None:
    root = image_at(tmp_path)
    with started(root, free_port()) as process:
        assert process.wait(WAIT_S) != 0
    assert "set CONSOLE_PASSWORD, the password of the user admin" in (root / "log").read_text()
    assert not (root / "console" / "users").exists()
