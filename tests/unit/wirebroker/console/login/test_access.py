from __future__ import annotations

import asyncio

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.changes.change import ConsoleRole
from wirebroker.console.login import password_hashes
from wirebroker.console.login.access import ConsoleAccess, LoginError
from wirebroker.console.login.access_tokens import (
    access_token_hash,
    bearer_token,
    check_token_hash,
    new_access_token,
)
from wirebroker.console.login.credential_file import Credential, write_credentials
from wirebroker.console.login.form_tokens import FormTokens
from wirebroker.console.login.grants import grants_of

ADDRESS = "192.0.2.1"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    secret = password_hashes.hash_of("a password")
    write_credentials(path, [Credential("anna", secret, grants_of("operator"))])
    return path


@pytest.fixture
def access(users, clock) -> ConsoleAccess:
    return ConsoleAccess(clock, users)


def viewer(access: ConsoleAccess, cookie: str):
    return access.viewer_of_cookie(cookie, ADDRESS, is_used=True)


async def test_a_login_begins_a_session_with_the_users_roles(access):
    cookie = await access.log_in("anna", "a password", ADDRESS)
    found = viewer(access, cookie)
    assert (found.name, found.address) == ("anna", ADDRESS)
    assert found.grants.role_in("dev") is ConsoleRole.OPERATOR
    access.log_out(found)
    assert viewer(access, cookie).session is None


async def test_unknown_users_look_like_wrong_passwords(access, monkeypatch):
    checked = []
    monkeypatch.setattr(password_hashes, "matches", lambda *pair: checked.append(pair))
    refusals = []
    for name, password in (("anna", "wrong"), ("none", "wrong"), ("none", "")):
        with pytest.raises(LoginError) as caught:
            await access.log_in(name, password, ADDRESS)
        refusals.append((str(caught.value), caught.value.status))
    assert len(set(refusals)) == 1
    assert len(checked) == 3


@pytest.mark.parametrize("password", ["", "a password ", "x" * 2000, "\udcff"])
async def test_other_passwords_are_refused(access, password):
    with pytest.raises(LoginError, match="The name or the password is wrong"):
        await access.log_in("anna", password, ADDRESS)


async def test_even_the_right_password_is_refused_while_an_address_is_locked(access, clock):
    for _ in range(10):
        with pytest.raises(LoginError, match="is wrong"):
            await access.log_in("anna", "x" * 2000, ADDRESS)
    with pytest.raises(LoginError, match="too many failed") as caught:
        await access.log_in("anna", "a password", ADDRESS)
    assert (caught.value.status, caught.value.retry_s) == (429, 60)
    assert await access.log_in("anna", "a password", "192.0.2.2")
    clock.passed_ms += 60_000
    assert await access.log_in("anna", "a password", ADDRESS)


async def test_a_flood_of_logins_is_bounded(access):
    tries = [access.log_in("anna", "wrong", f"192.0.2.{number}") for number in range(40)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    statuses = [result.status for result in results if isinstance(result, LoginError)]
    assert statuses.count(403) == 16
    assert statuses.count(503) == 24


async def test_a_new_password_or_a_removed_user_ends_sessions(access, users, clock):
    cookie = await access.log_in("anna", "a password", ADDRESS)
    kept = await access.log_in("anna", "a password", ADDRESS)
    secret = password_hashes.hash_of("another")
    write_credentials(users, [Credential("anna", secret, grants_of("reader"))])
    clock.passed_ms += 1000
    assert viewer(access, cookie).session is None
    cookie = await access.log_in("anna", "another", ADDRESS)
    write_credentials(users, [Credential("anna", secret, grants_of("admin"))])
    clock.passed_ms += 1000
    assert viewer(access, cookie).grants.role_in("dev") is ConsoleRole.ADMIN
    write_credentials(users, [])
    clock.passed_ms += 1000
    assert viewer(access, cookie).session is None
    assert viewer(access, kept).session is None


def test_without_users_everyone_is_admin(clock):
    found = viewer(ConsoleAccess(clock), "x" * 43)
    assert (found.name, found.grants.role_in("dev")) == (None, ConsoleRole.ADMIN)


def test_a_program_has_the_roles_of_its_token(tmp_path, clock):
    path = tmp_path / "tokens"
    token = new_access_token()
    write_credentials(
        path, [Credential("orders", access_token_hash(token), grants_of("operator@test"))]
    )
    access = ConsoleAccess(clock, None, path)
    program = access.viewer_of_token(token, ADDRESS)
    assert program is not None
    assert (program.name, program.is_program) == ("orders", True)
    assert program.grants.role_in("test") is ConsoleRole.OPERATOR
    for other in (
        new_access_token(),
        "",
        token + "x",
        token[:-1],
        "\udcff",
        access_token_hash(token),
    ):
        assert access.viewer_of_token(other, ADDRESS) is None
    assert ConsoleAccess(clock).viewer_of_token(token, ADDRESS) is None


@pytest.mark.parametrize("text", ["", "sha256$", "sha256$" + "g" * 64, "a" * 64])
def test_other_hashes_of_tokens_are_refused(text):
    with pytest.raises(ValueError, match="console-token"):
        check_token_hash(text)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", None),
        ("Basic abc", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bearer_token_is_read_from_its_header(header, token):
    assert bearer_token(header) == token


def test_a_forms_token_belongs_to_one_cookie_of_one_console():
    tokens = FormTokens()
    token = tokens.token_of("a")
    assert tokens.is_valid(token, "a")
    for other, cookie in ((token, "b"), ("", "a"), (token[:-1], "a"), (token + "\udcff", "a")):
        assert not tokens.is_valid(other, cookie)
    assert not FormTokens().is_valid(token, "a")
