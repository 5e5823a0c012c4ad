"""Changes of users and clients by `kafka-configs`, before any request is sent."""

from __future__ import annotations

import click
import pytest

from wirebroker.cli.kafka.client_configs import check_changes
from wirebroker.cli.kafka.config_entities import DEFAULT, NamedEntity, entities_of
from wirebroker.codecs.scram import LEAST_ITERATIONS, MOST_ITERATIONS

SHA_512 = 2


@pytest.mark.parametrize(
    ("said", "iterations"),
    [
        ("", LEAST_ITERATIONS),
        ("iterations=,", LEAST_ITERATIONS),
        ("iterations=-1,", LEAST_ITERATIONS),
        ("iterations=8192,", 8192),
        (f"iterations={MOST_ITERATIONS},", MOST_ITERATIONS),
    ],
)
def test_scram_config_has_password_and_iterations(said: str, iterations: int) -> None:
    changes = check_changes([NamedEntity("users", "bob")], {"SCRAM-SHA-512": f"{said}password=a,b"})
    assert changes.logins == {SHA_512: ("a,b", iterations)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("SCRAM-SHA-512", "password=", "the password of SCRAM-SHA-512 is empty"),
        ("SCRAM-SHA-512", "iterations=4095,password=a", "needs 4096 iterations, at least"),
        ("SCRAM-SHA-512", "iterations=16385,password=a", "takes 16384 iterations, at most"),
        ("SCRAM-SHA-512", f"iterations={'9' * 5000},password=a", "takes 16384 iterations"),
        ("SCRAM-SHA-512", "iterations=-,password=a", "write SCRAM-SHA-512=[iterations=N,"),
        ("producer_byte_rate", "1_0", "producer_byte_rate=1_0 cannot be used: it must be a number"),
        ("producer_byte_rate", "", "it must be a number"),
    ],
)
def test_invalid_scram_config_is_refused_with_a_message(name: str, text: str, words: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        check_changes([NamedEntity("users", "bob")], {name: text})
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("kinds", "repeated"),
    [
        ("users clients users", "users"),
        ("users users clients", "users"),
        ("users users users", "users,users"),
        ("clients users users clients", "users,clients"),
    ],
)
def test_repeated_entity_types_are_refused_with_kafkas_message(kinds: str, repeated: str) -> None:
    types = kinds.split()
    with pytest.raises(click.UsageError) as refused:
        entities_of(types, [DEFAULT] * len(types), named=[], is_changed=False)
    assert refused.value.message == f"Duplicate entity type(s) specified: {repeated}"
