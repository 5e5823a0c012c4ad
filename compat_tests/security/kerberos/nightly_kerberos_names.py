"""Random rules from principals to users have the same results as with Kafka's class."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.support.brokers import java_start
from tests.support.tools import java_programs
from wirebroker.config.security.kerberos_names import NoUserError, kerberos_rules, user_of

_SOURCES = Path(__file__).parent / "java"
_COUNT = 4000
_PARTS = ("alice", "App.x1", "kafka", "banana", "", "a-b", "ADMIN")
_FORMS = ("$1", "$1@$0", "$1-$2", "$2", "$1;$2", "x$1y$1", "$", "$9", "fixed", "")
_FITS = ("", "(.*)", "(.*@R)", "(a.*)", "([a-z]+;admin)", "(kafka-.*)", "()")
_CHANGES = (
    *("", "s/a/b/", "s/a/b/g", "s/@.*//", "s/(.)(.)/$2$1/", "s/(a)/$11/g", "s/x*/-/g", "s/^//"),
    *(r"s/a/\$/", "s/(?<n>a)/${n}${n}/g", "s/a/$0$0/", "s/a/$1/", "s/[a/b/", "s/a/b$/"),
)


def rule(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(("DEFAULT", "DEFAULTS", "RULE:[x:$1]", "RULE:[1:$1"))
    change = rng.choice(_CHANGES)
    letters = rng.choice(("", "", "L", "U", "/L", "/U", "LU"))
    return f"RULE:[{rng.choice('0122')}:{rng.choice(_FORMS)}]{rng.choice(_FITS)}{change}" + (
        letters
    )


def principal(rng: random.Random) -> str:
    first, second = rng.choice(_PARTS), rng.choice((*_PARTS, "admin"))
    realm = rng.choice(("@R", "@OTHER", "@", ""))
    return rng.choice((first, f"{first}/{second}", f"{first}/{second}/x", f"{first}@x")) + realm


def ours(rules: str, name: str) -> str:
    try:
        read = kerberos_rules(tuple(rules.split(";")))
    except ValueError:
        return "?"
    try:
        return f"={user_of(name, read, 'R')}"
    except NoUserError:
        return "!"


def has_bad_replacement(rules: str) -> bool:
    return "s/a/$1/" in rules or "s/a/b$/" in rules


@pytest.mark.java
@pytest.mark.long
def test_principal_rules_give_same_names_as_kafka(request: pytest.FixtureRequest) -> None:
    rng = random.Random(request.config.option.seed)
    samples = [
        (
            ";".join(rule(rng) for _ in range(rng.choice((1, 1, 2)))).replace(";admin", "-a"),
            principal(rng),
        )
        for _ in range(_COUNT)
    ]
    classes = java_programs.compiled("names", _SOURCES)
    done = subprocess.run(
        java_start.command("-Xmx128m", "ShortNames", more_classes=classes),
        input="".join(f"{rules}\t{name}\n" for rules, name in samples),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    kafka_results = done.stdout.splitlines()
    assert len(kafka_results) == _COUNT
    differences = [
        (*rules_and_name, kafka_result, ours(*rules_and_name))
        for rules_and_name, kafka_result in zip(samples, kafka_results, strict=True)
        if kafka_result != ours(*rules_and_name)
    ]
    # Kafka reports an invalid replacement when it is used, wirebroker when it is parsed.
    assert [
        difference
        for difference in differences
        if difference[3] != "?" or not has_bad_replacement(difference[0])
    ] == []
    assert {result[:1] for result in kafka_results} >= {"=", "!", "?"}
