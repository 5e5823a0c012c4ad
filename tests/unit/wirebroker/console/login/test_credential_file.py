from __future__ import annotations

import os
import stat

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.login.credential_file import (
    Credential,
    CredentialError,
    CredentialFile,
    read_credentials,
    write_credentials,
)
from wirebroker.console.login.grants import grants_of


def accept(_secret: str) -> None:
    pass


def refuse(_secret: str) -> None:
    raise ValueError("the hash is wrong")


def test_written_credentials_can_be_read(tmp_path):
    path = tmp_path / "users"
    rows = [
        Credential("anna", "$argon2id$v=19$m=1,t=2$x", grants_of("admin")),
        Credential("b.c@example", "y", grants_of("reader,admin@test")),
    ]
    write_credentials(path, rows)
    assert list(read_credentials(path, accept).values()) == rows
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    write_credentials(path, rows[:1])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_comments_and_empty_lines_are_ignored(tmp_path):
    path = tmp_path / "users"
    path.write_text("# users\n\nanna : h : reader\n")
    assert read_credentials(path, accept) == {"anna": Credential("anna", "h", grants_of("reader"))}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("anna", "line 1 .* write NAME:HASH:ROLE"),
        ("anna:h:admin:x", "write NAME:HASH:ROLE"),
        ("\n:h:admin", "line 2 .* is not a name"),
        ("a b:h:admin", "is not a name"),
        ("anna:h:root", "roles: reader"),
        ("anna:h:admin\nanna:h:reader", "line 2 .* already"),
        ("x" * 300_000, "too large"),
        ("\n" * 3000, "too large"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path, text, reason):
    path = tmp_path / "users"
    path.write_text(text)
    with pytest.raises(CredentialError, match=reason):
        read_credentials(path, accept)


def test_hashes_are_checked(tmp_path):
    path = tmp_path / "users"
    path.write_text("anna:h:admin\n")
    with pytest.raises(CredentialError, match=r"line 1 .* the hash is wrong"):
        read_credentials(path, refuse)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CredentialError, match="cannot be read: No such file"):
        CredentialFile(tmp_path / "none", accept, HandClock())
    with pytest.raises(CredentialError, match="cannot be written"):
        write_credentials(tmp_path / "none" / "users", [])


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "users"
    path.write_text("anna:h:admin\n")
    clock = HandClock()
    file = CredentialFile(path, accept, clock)
    write_credentials(path, [Credential("bert", "h", grants_of("reader"))])
    assert list(file.all()) == ["anna"]
    clock.passed_ms += 1000
    assert list(file.all()) == ["bert"]


def test_the_last_usable_content_holds_if_a_file_is_broken(tmp_path, caplog):
    path = tmp_path / "users"
    path.write_text("anna:h:admin\n")
    clock = HandClock()
    file = CredentialFile(path, accept, clock)
    path.write_text("anna:h:root\n")
    for _ in range(2):
        clock.passed_ms += 1000
        assert list(file.all()) == ["anna"]
    path.unlink()
    clock.passed_ms += 1000
    assert list(file.all()) == ["anna"]
    assert len(caplog.records) == 2
    assert "still apply" in caplog.text


def no_owner(_descriptor: int, owner: int, _group: int) -> None:
    if owner != -1:
        raise PermissionError(1, "Operation not permitted")


def no_group(_descriptor: int, _owner: int, _group: int) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize(
    ("refusal", "owners", "mode"),
    [(None, [True], 0o640), (no_owner, [True, False], 0o640), (no_group, [True, False], 0o600)],
)
def test_owner_and_group_stay(tmp_path, monkeypatch, refusal, owners, mode):
    path = tmp_path / "users"
    path.write_text("")
    path.chmod(0o640)
    state = path.stat()
    calls: list[tuple[int, int]] = []

    def fchown(descriptor: int, owner: int, group: int) -> None:
        calls.append((owner, group))
        if refusal is not None:
            refusal(descriptor, owner, group)

    monkeypatch.setattr(os, "fchown", fchown)
    write_credentials(path, [])
    group = state.st_gid
    assert calls == [(state.st_uid if is_owner else -1, group) for is_owner in owners]
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_planted_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "users"
    (tmp_path / f"users.{os.getpid()}.new").symlink_to(victim)
    write_credentials(path, [])
    assert victim.read_text() == "precious"
    assert path.read_text() == ""
