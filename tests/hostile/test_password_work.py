"""Password checks reveal neither the password nor whether the user exists.

The tests compare the sequence of called functions, including C functions: `hmac.compare_digest`
compares digests of equal length, and an unknown user costs the same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.security.sasl_clients import CLIENT_NONCE, scram_final
from wirebroker.codecs.scram import LEAST_ITERATIONS, ScramKeys, keys_of, salted_password
from wirebroker.codecs.scram_forms import COMMON, ScramForm
from wirebroker.security.sasl.mechanisms import NotProvedError, PlainMechanism, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

PASSWORD = "p" * 60_000


def calls_of(work: Callable[[], object]) -> list[str]:
    calls: list[str] = []

    def note(frame: Any, event: str, called: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_qualname)
        elif event == "c_call":
            calls.append(called.__qualname__)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def calls_of_refusal(work: Callable[[], object]) -> list[str]:

    def refused() -> None:
        try:
            work()
        except NotProvedError:
            return
        raise AssertionError("the login is not refused")

    return calls_of(refused)


def calls_of_plain(passwords: dict[str, str], user: str, password: str) -> list[str]:
    mechanism = PlainMechanism(passwords, b"key")
    token = f"\0{user}\0{password}".encode()
    return calls_of_refusal(lambda: mechanism.step(token))


def test_plain_does_equal_work_for_any_password_and_unknown_users() -> None:
    long, short = {"alice": PASSWORD}, {"alice": "alice-secret"}
    first = calls_of_plain(long, "alice", "x" + PASSWORD[1:])
    assert "compare_digest" in first
    assert calls_of_plain(long, "alice", PASSWORD[:-1] + "x") == first
    assert calls_of_plain(short, "alice", "alice-secreT") == first
    assert calls_of_plain(short, "malic", "alice-secret") == first


@pytest.mark.parametrize(("number", "mechanism"), [(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")])
def test_scram_does_equal_work_for_unknown_user_and_wrong_password(
    number: int, mechanism: str
) -> None:
    salt = b"0123456789abcdef"
    salted = salted_password(number, "alice-secret", salt, LEAST_ITERATIONS)
    users = {"alice": keys_of(number, salted, salt=salt, iterations=LEAST_ITERATIONS)}

    def log_in(users_by_name: dict[str, ScramKeys]) -> tuple[list[str], list[str]]:
        bare = f"n=alice,r={CLIENT_NONCE}"
        server = ScramMechanism(
            number,
            users_by_name.get,
            token_of=lambda _token: None,
            forms=lambda: {COMMON: 1, ScramForm(8192, 16): 1},
            nonce="nonce",
            salt_key=b"key",
        )
        answers: list[bytes] = []
        first_calls = calls_of(lambda: answers.append(server.step(b"n,," + bare.encode())))
        proof = scram_final(mechanism, "wrong", bare, answers[0].decode())
        return first_calls, calls_of_refusal(lambda: server.step(proof))

    wrong_password, unknown_user = log_in(users), log_in({})
    assert unknown_user == wrong_password
    assert "compare_digest" in unknown_user[1]
