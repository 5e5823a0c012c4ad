"""User names as Apache Kafka 4.3.1 maps them from certificate and Kerberos names.

kafka_names.json has the results of SslPrincipalMapper and KerberosShortNamer under Java 17: rules,
name, and user, or null and the certificate's exception.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebroker.config.java.patterns import java_pattern
from wirebroker.config.java.replacements import JavaReplacement
from wirebroker.config.security.kerberos_names import NoUserError, kerberos_rules, user_of
from wirebroker.config.security.principal_rules import principal_name, principal_rules

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("kafka_names.json").read_text())


def test_certificate_users_equal_kafkas() -> None:
    different: list[Any] = []
    for rules, name, user, error in RECORDED["certificates"]:
        try:
            result = principal_name(principal_rules(rules), name)
        except ValueError:
            # Kafka starts with a replacement that fails each login; here the start fails.
            is_same = error not in {None, "NoMatchingRule"} or "$" in rules
            result = None
        else:
            is_same = error in {None, "NoMatchingRule"}
        if not is_same or result != user:
            different.append((rules, name, user, result))
    assert different == []
    assert len(RECORDED["certificates"]) > 700


def test_kerberos_users_equal_kafkas() -> None:
    different: list[Any] = []
    for rule, name, user in RECORDED["kerberos"]:
        try:
            result: str | None = user_of(name, kerberos_rules((rule,)), "EXAMPLE.COM")
        except NoUserError:
            result = None
        if result != user:
            different.append((rule, name, user, result))
    assert different == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", r"no \)"),
        ("a)", r"a \) has no \("),
        ("*a", "follows nothing"),
        ("a{,3}", "follows nothing"),
        ("[a", "too early"),
        ("[z-a]", "an invalid end"),
        ("[a&&]", "nothing on one side"),
        (r"\1", "no group 1"),
        (r"\k<n>", "unknown group name"),
        (r"\p{IsAlphabetic}", "must name one of"),
        (r"\G", "not supported"),
        ("(?m)a", "flags m"),
        ("(?<=a+)b", "fixed-width"),
        (r"\x{110000}", "no character"),
        (r"\Qab\E+", r"follows \\E"),
        ("a\\", "too early"),
    ],
)
def test_untranslatable_java_pattern_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        java_pattern(pattern)


def test_replacement_continues_after_an_empty_match() -> None:
    """Python's own `sub` would continue at the same position."""
    replacement = JavaReplacement("<$1>", java_pattern("(x)?(.*?)"))
    assert replacement.replace("xab") == "<x><>a<>b<>"
    assert replacement.replace("xab", only_first=True) == "<x>ab"
