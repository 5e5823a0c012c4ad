"""`wirebroker console-user` and `console-token`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from wirebroker.console.login import password_hashes
from wirebroker.console.login.access_tokens import access_token_hash, check_token_hash
from wirebroker.console.login.credential_file import read_credentials

if TYPE_CHECKING:
    from pathlib import Path


LENGTH = "the password must have 8 characters or more, and at most 1024 bytes"


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wirebroker", *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        check=False,
    )


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "file"


def set_user(file: Path, name: str, *flags: str, password: str = "a password\n"):
    return run("console-user", "set", name, "--users", str(file), *flags, stdin=password)


def test_users_are_created_changed_listed_and_deleted(file):
    assert set_user(file, "anna", "--role", "admin").returncode == 0
    done = set_user(file, "rita", "--role", "reader", "--role", "operator@test")
    assert done.stdout == "user rita: reader,operator@test\n"
    users = read_credentials(file, password_hashes.check_hash)
    assert password_hashes.matches(users["anna"].secret, "a password")
    assert set_user(file, "anna", password="another one\n").returncode == 0
    done = set_user(file, "rita", "--role", "admin", "--keep-password")
    assert done.returncode == 0
    changed = read_credentials(file, password_hashes.check_hash)
    assert password_hashes.matches(changed["anna"].secret, "another one")
    assert changed["rita"].secret == users["rita"].secret
    done = run("console-user", "list", "--users", str(file))
    assert done.stdout == "anna: admin\nrita: admin\n"
    assert run("console-user", "delete", "anna", "--users", str(file)).returncode == 0
    assert list(read_credentials(file, password_hashes.check_hash)) == ["rita"]


def test_a_token_is_printed_once_and_stored_as_a_hash(file):
    done = run("console-token", "create", "orders", "--tokens", str(file), "--role", "operator")
    token = done.stdout.strip()
    assert token not in file.read_text()
    rows = read_credentials(file, check_token_hash)
    assert rows["orders"].secret == access_token_hash(token)
    done = run("console-token", "list", "--tokens", str(file))
    assert done.stdout == "orders: operator\n"
    assert run("console-token", "delete", "orders", "--tokens", str(file)).returncode == 0
    assert read_credentials(file, check_token_hash) == {}


@pytest.mark.parametrize(
    ("arguments", "stdin", "reason"),
    [
        (("set", "anna"), "a password\n", "--role is missing"),
        (("set", "anna", "--role", "root"), "a password\n", "roles: reader, operator, admin"),
        (("set", "a b", "--role", "admin"), "a password\n", "is not a name"),
        (("set", "anna", "--role", "admin"), "", LENGTH),
        (("set", "anna", "--role", "admin"), "short\n", LENGTH),
        (("set", "anna", "--role", "admin"), "x" * 2000, LENGTH),
        (("set", "anna", "--role", "admin"), "x" * 1025 + "\n", LENGTH),
        (("set", "anna", "--role", "admin"), "é" * 600 + "\n", LENGTH),
        (("set", "anna", "--role", "admin"), "a password \udcff\n", "is not UTF-8"),
        (("set", "anna", "--role", "admin", "--keep-password"), "", "there is no user anna"),
        (("delete", "anna"), "", "there is no user anna"),
    ],
)
def test_other_users_are_refused(file, arguments, stdin, reason):
    done = run("console-user", *arguments, "--users", str(file), stdin=stdin)
    assert done.returncode != 0
    assert reason in done.stderr
    assert not file.exists()


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_longest_password_is_not_cut(file, end):
    password = "é" * 512
    assert set_user(file, "anna", "--role", "admin", password=password + end).returncode == 0
    users = read_credentials(file, password_hashes.check_hash)
    assert password_hashes.matches(users["anna"].secret, password)


def test_a_damaged_file_is_not_replaced(file):
    file.write_text("anna\n")
    done = set_user(file, "anna", "--role", "admin")
    assert done.returncode != 0
    assert "line 1" in done.stderr
    assert file.read_text() == "anna\n"
