"""How long a password is looked at tells nothing of it, nor whether its user is there.

CPU time of what decides, in turns, so that a machine that others use costs all sides the same; one
try of several has to hold, since what is ours shows in each.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.sasl_clients import CLIENT_NONCE, scram_final
from wirebroker.codecs.scram import LEAST_ITERATIONS, keys_of, salted_password
from wirebroker.codecs.scram_forms import COMMON, ScramForm
from wirebroker.security.mechanisms import NotProvedError, PlainMechanism, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 400
ATTEMPTS = 6
# What a comparison that ends early would save of 64 KiB is some ten times as much.
SAME = 0.1
PASSWORD = "p" * 60_000


def took_ns(work: Callable[[], None]) -> int:
    began = time.thread_time_ns()
    work()
    return time.thread_time_ns() - began


def are_equally_long(ways: dict[str, Callable[[], None]]) -> bool:
    times: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            times[name].append(took_ns(work))
    middles = [statistics.median(each) for each in times.values()]
    return max(middles) <= min(middles) * (1 + SAME)


def assert_equally_long(ways: dict[str, Callable[[], None]]) -> None:
    assert any(are_equally_long(ways) for _ in range(ATTEMPTS)), list(ways)


def refused_plain(user: str, password: str) -> Callable[[], None]:
    token = f"\0{user}\0{password}".encode()

    def log_in() -> None:
        with pytest.raises(NotProvedError):
            PlainMechanism({"alice": PASSWORD}, b"key").step(token)

    return log_in


def test_plain_takes_as_long_for_any_password_and_for_nobody() -> None:
    assert_equally_long(
        {
            "wrong at its beginning": refused_plain("alice", "x" + PASSWORD[1:]),
            "wrong at its end": refused_plain("alice", PASSWORD[:-1] + "x"),
        }
    )
    # Passwords of the same length: all that there is to compare is the same.
    short = {"alice": "alice-secret"}

    def log_in(user: str, password: str) -> Callable[[], None]:
        token = f"\0{user}\0{password}".encode()

        def fail() -> None:
            with pytest.raises(NotProvedError):
                PlainMechanism(short, b"key").step(token)

        return fail

    assert_equally_long(
        {
            "somebody": log_in("alice", "alice-secreT"),
            "nobody": log_in("malic", "alice-secret"),
        }
    )


@pytest.mark.parametrize(("number", "mechanism"), [(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")])
def test_scram_takes_as_long_for_nobody_as_for_a_wrong_password(
    number: int, mechanism: str
) -> None:
    salt = b"0123456789abcdef"
    salted = salted_password(number, "alice-secret", salt, LEAST_ITERATIONS)
    users = {"alice": keys_of(number, salted, salt=salt, iterations=LEAST_ITERATIONS)}

    def mechanism_of() -> ScramMechanism:
        return ScramMechanism(
            number,
            users.get,
            token_of=lambda _token: None,
            forms=lambda: {COMMON: 1, ScramForm(8192, 16): 1},
            nonce="nonce",
            salt_key=b"key",
        )

    def proof_for(user: str) -> tuple[bytes, bytes]:
        bare = f"n={user},r={CLIENT_NONCE}"
        begun = mechanism_of()
        first = begun.step(b"n,," + bare.encode()).decode()
        return b"n,," + bare.encode(), scram_final(mechanism, "wrong", bare, first)

    def log_in(user: str) -> Callable[[], None]:
        messages = proof_for(user)

        def fail() -> None:
            server = mechanism_of()
            server.step(messages[0])
            with pytest.raises(NotProvedError):
                server.step(messages[1])

        return fail

    assert_equally_long({"somebody": log_in("alice"), "nobody": log_in("malic")})
