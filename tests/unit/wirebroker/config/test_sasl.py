"""What a listener with SASL is told: mechanisms, and users by JAAS lines."""

from __future__ import annotations

import pytest

from tests.support.sasl_clients import PLAIN_USERS, sasl_listener
from wirebroker.config import Config, ConfigError
from wirebroker.config.dynamic import check_change
from wirebroker.config.jaas import login_options
from wirebroker.config.listeners import listeners_of

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def with_settings(**changes: str) -> Config:
    return Config({**sasl_listener("PLAIN", "SCRAM-SHA-256"), **changes})


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (f'{_PLAIN} required user_a="x";', {"user_a": "x"}),
        (
            f"{_PLAIN} REQUIRED\n  username=a // who\n password = b\n;",
            {"username": "a", "password": "b"},
        ),
        (f'{_PLAIN} required /* "; */ user_a="a\\"\\\\b\\n=;//";', {"user_a": 'a"\\b\n=;//'}),
        (f"{_PLAIN} required user_a='\"x\"';", {"user_a": '"x"'}),
        (f"{_PLAIN} required;", {}),
    ],
)
def test_a_jaas_line_is_read_as_java_reads_it(line: str, options: dict[str, str]) -> None:
    assert login_options(line, "PLAIN") == options


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{_PLAIN} required user_a="hunter2"', "semicolon"),
        (f"{_PLAIN} required; {_PLAIN} required;", "more than one"),
        ("org.example.Login required password=hunter2;", "no login module org.example.Login"),
        (f"{_PLAIN} perhaps;", "stands required"),
        (f"{_PLAIN} required user_a hunter2;", "options are written"),
        (f'{_PLAIN} required user_a="hunter2;', "quote"),
        ("", "semicolon"),
        (";", "write <login module>"),
    ],
)
def test_what_is_no_jaas_line_is_refused_without_telling_it(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        login_options(line, "PLAIN")
    assert "hunter2" not in str(refused.value)


def test_a_listener_has_its_own_mechanisms_users_and_lifetimes() -> None:
    (found,) = listeners_of(
        with_settings(
            **{
                "connections.max.reauth.ms": "9000",
                "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1000",
            }
        )
    )
    assert (found.protocol, found.protocol_number) == ("SASL_PLAINTEXT", 2)
    assert found.sasl is not None
    assert found.sasl.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert found.sasl.passwords == PLAIN_USERS
    assert found.sasl.reauthentication_ms == {"PLAIN": 1000, "SCRAM-SHA-256": 9000}
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("sasl.enabled.mechanisms", "CRAM-MD5", "CRAM-MD5 is not served"),
        ("sasl.enabled.mechanisms", "GSSAPI", "gssapi.sasl.jaas.config is missing"),
        ("sasl.enabled.mechanisms", "", "would let nobody in"),
        ("listener.name.sasl_plaintext.sasl.enabled.mechanisms", "CRAM-MD5", "CRAM-MD5"),
        (_JAAS, "org.example.Login required;", "org.example.Login"),
        ("sasl.mechanism.inter.broker.protocol", "SCRAM-SHA-512", "offers PLAIN"),
        ("security.inter.broker.protocol", "PLAINTEXT", "not an advertised listener"),
        ("inter.broker.listener.name", "SASL_PLAINTEXT", "both set"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_name(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listeners_of(with_settings(**{name: value}))


def test_plain_needs_its_users() -> None:
    settings = {**sasl_listener("PLAIN")}
    del settings[_JAAS]
    with pytest.raises(ConfigError, match=f"{_JAAS} is missing"):
        listeners_of(Config(settings))


def test_users_may_change_while_the_broker_runs() -> None:
    changed = {_JAAS: f'{_PLAIN} required user_carol="x";'}
    config = with_settings()
    check_change(config, cluster_wide={}, this_broker=changed, is_default=False)
    (found,) = listeners_of(config.with_dynamic(cluster_wide={}, this_broker=changed))
    assert found.sasl is not None
    assert dict(found.sasl.passwords) == {"carol": "x"}
    with pytest.raises(ConfigError, match="semicolon"):
        check_change(config, cluster_wide={}, this_broker={_JAAS: "x"}, is_default=False)
