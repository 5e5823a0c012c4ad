"""GSSAPI settings: Kerberos JAAS lines, and rules from principals to users."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.security.kerberos import KerberosKeys
from wirebroker.config.security.kerberos_names import NoUserError, kerberos_rules, user_of

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
JAAS = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
KEYTAB = 'useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab"'


def with_line(options: str, **settings: str) -> Config:
    return Config(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "GSSAPI",
            JAAS: f"{MODULE} required {options};",
            **settings,
        }
    )


def test_listener_has_a_principal_keytab_and_rules() -> None:
    rules = "listener.name.sasl_plaintext.sasl.kerberos.principal.to.local.rules"
    config = with_line(
        f"{KEYTAB} principal='kafka/h@R' serviceName=kafka",
        **{rules: "RULE:[1:$1](a.*)s/a/b/gL,DEFAULT", "sasl.kerberos.service.name": "kafka"},
    )
    (listener,) = listeners_of(config)
    assert listener.sasl is not None
    assert listener.sasl.kerberos is not None
    assert listener.sasl.kerberos.keys == KerberosKeys(
        principal="kafka/h@R", keytab="/etc/kafka.keytab", service_name="kafka"
    )
    assert [rule.parts for rule in listener.sasl.kerberos.rules] == [1, None]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "useKeyTab=true or useTicketCache=true"),
        ("useKeyTab=true principal='kafka/h@R'", "needs keyTab and principal"),
        (KEYTAB, "needs keyTab and principal"),
        ("useTicketCache=true", "a listener needs a keytab"),
        (f"{KEYTAB} principal=kafka", "service/host@REALM"),
        (f"{KEYTAB} principal='kafka/h@R' magic=true", "unknown option magic"),
        (f"{KEYTAB} principal='kafka/h@R' serviceName=other", "serviceName=other"),
    ],
)
def test_unusable_jaas_line_is_refused(options: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listeners_of(with_line(options, **{"sasl.kerberos.service.name": "kafka"}))


@pytest.mark.parametrize(
    "rule",
    [
        "alice",
        "RULE:[x:$1]",
        "RULE:[:$1]",
        "RULE:[1:$1](()",
        "RULE:[1:$1]s/(/x/",
        "RULE:[1:$1]s/a/$1/",
        "RULE:[1:$1]s/a/${b}/",
        "RULE:[1:$1]s/a/b$/",
        "RULE:[1:$1]LU",
        "DEFAULTS",
        "RULE:[99999999999:$1]",
    ],
)
def test_invalid_kerberos_rule_is_refused(rule: str) -> None:
    line = f"{KEYTAB} principal='kafka/h@R'"
    with pytest.raises(ConfigError, match=r"principal\.to\.local\.rules cannot be used"):
        listeners_of(with_line(line, **{"sasl.kerberos.principal.to.local.rules": rule}))


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        ("DEFAULT", "alice@R", "alice"),
        ("DEFAULT", "kafka/host@R", "kafka"),
        ("DEFAULT", "alice", "alice"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//,DEFAULT", "alice@OTHER", "alice"),
        ("RULE:[2:$1-$2]", "kafka/host@R", "kafka-host"),
        ("RULE:[2:$1;$2](^.*;admin$)s/;admin$//L", "Ann/admin@R", "ann"),
        ("RULE:[1:$1]s/a/b/g/U", "banana@R", "BBNBNB"),
        ("RULE:[1:$1]s/a/b/", "banana@R", "bbnana"),
        ("RULE:[1:$1]s/(b)(a)/$2$11/", "banana@R", "ab1nana"),
        ("RULE:[1:$1]s/b/\\$1/", "banana@R", "$1anana"),
        ("RULE:[1:App.$1]", "alice@R", "App.alice"),
    ],
)
def test_kerberos_rules_map_principals_to_users(rules: str, principal: str, user: str) -> None:
    assert user_of(principal, kerberos_rules(tuple(rules.split(","))), "R") == user


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", "alice@OTHER"),
        ("RULE:[2:$1]", "alice@R"),
        ("RULE:[1:$1@$0]", "alice@R"),
        ("RULE:[1:$2]", "alice@R"),
        ("RULE:[1:$]", "alice@R"),
        ("DEFAULT", "a/b/c@R"),
        ("DEFAULT", "a@b@R"),
        ("", "alice@R"),
    ],
)
def test_principal_without_a_matching_rule_is_refused(rules: str, principal: str) -> None:
    with pytest.raises(NoUserError):
        user_of(principal, kerberos_rules(tuple(filter(None, rules.split(",")))), "R")
