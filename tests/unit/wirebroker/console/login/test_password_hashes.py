from __future__ import annotations

import argon2
import pytest

from wirebroker.console.login import password_hashes


def test_a_password_matches_its_own_hash():
    password_hash = password_hashes.hash_of("correct horse")
    password_hashes.check_hash(password_hash)
    assert password_hashes.matches(password_hash, "correct horse")
    assert not password_hashes.matches(password_hash, "correct horse ")
    assert password_hashes.hash_of("correct horse") != password_hash
    assert not password_hashes.matches("none", "correct horse")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not one of argon2id"),
        ("5f4dcc3b5aa765d61d8327deb882cf99", "not one of argon2id"),
        ("$2b$12$abcdefghijklmnopqrstuv", "not one of argon2id"),
    ],
)
def test_other_hashes_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        password_hashes.check_hash(text)


@pytest.mark.parametrize(
    "costs", [{"memory_cost": 128 << 10}, {"time_cost": 11}, {"parallelism": 9}]
)
def test_hashes_that_cost_too_much_are_refused(costs):
    cheap = {"memory_cost": 80, "time_cost": 1, "parallelism": 1}
    text = argon2.PasswordHasher(memory_cost=80, time_cost=1, parallelism=1).hash("x")
    for name, short in (("memory_cost", "m"), ("time_cost", "t"), ("parallelism", "p")):
        if name in costs:
            text = text.replace(f"{short}={cheap[name]}", f"{short}={costs[name]}")
    with pytest.raises(ValueError, match="costs too much"):
        password_hashes.check_hash(text)


def test_hashes_of_other_variants_are_refused():
    text = argon2.PasswordHasher(type=argon2.Type.I, memory_cost=80, parallelism=1).hash("x")
    with pytest.raises(ValueError, match="not one of argon2id"):
        password_hashes.check_hash(text)
