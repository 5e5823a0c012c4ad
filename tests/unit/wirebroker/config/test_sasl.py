"""Settings of SASL listeners: mechanisms, and users by JAAS lines."""

from __future__ import annotations

import re

import pytest

from tests.support.security.sasl_clients import PLAIN_USERS, sasl_listener
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.protection import check_protection
from wirebroker.config.rows.row import StartError
from wirebroker.config.sources.dynamic import check_change
from wirebroker.config.sources.sources import load_config

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def with_settings(**changes: str) -> Config:
    return Config({**sasl_listener("PLAIN", "SCRAM-SHA-256"), **changes})


def test_listener_has_its_own_mechanisms_users_and_lifetimes() -> None:
    (listener,) = listeners_of(
        with_settings(
            **{
                "connections.max.reauth.ms": "9000",
                "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1000",
            }
        )
    )
    assert (listener.protocol, listener.protocol_number) == ("SASL_PLAINTEXT", 2)
    assert listener.sasl is not None
    assert listener.sasl.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert listener.sasl.passwords == PLAIN_USERS
    assert listener.sasl.reauthentication_ms == {"PLAIN": 1000, "SCRAM-SHA-256": 9000}
    assert "secret" not in repr(listener)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.enabled.mechanisms",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms",
        "listener.name.controller.sasl.enabled.mechanisms",
        "listener.name.missing.sasl.enabled.mechanisms",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.mechanism.controller.protocol",
    ],
)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_unknown_mechanism_is_refused_in_every_config(name: str, listener: str) -> None:
    settings = with_settings(listeners=f"{listener}://127.0.0.1:0")
    for text in ("SCRAM-SHA-51", "plain", "PLAIN;SCRAM-SHA-512", "PLAIN,SCRAM-SHA-51"):
        with pytest.raises(ConfigError, match=re.escape(f"{name}={text} cannot be used")):
            with_settings(listeners=f"{listener}://127.0.0.1:0", **{name: text})
        variable = "KAFKA_" + name.upper().replace("_", "__").replace(".", "_")
        with pytest.raises(ConfigError, match=re.escape(f"{name}={text} cannot be used")):
            load_config(file=None, environment={variable: text}, flags={})
        for is_default in (True, False):
            wide, own = ({name: text}, {}) if is_default else ({}, {name: text})
            with pytest.raises(ConfigError, match=re.escape(name)):
                check_change(settings, cluster_wide=wide, this_broker=own, is_default=is_default)


@pytest.mark.parametrize("mechanism", ["scram-sha-51", "cram-md5"])
def test_jaas_line_of_unknown_mechanism_is_refused(mechanism: str) -> None:
    name = f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config"
    line = f'{_PLAIN} required user_a="x";'
    config = with_settings(**{name: line})
    with pytest.raises(StartError, match=re.escape(name)):
        check_protection(config)
    with pytest.raises(ConfigError, match=re.escape(name)):
        check_change(with_settings(), cluster_wide={}, this_broker={name: line}, is_default=False)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (
            "sasl.enabled.mechanisms",
            "CRAM-MD5",
            "it must be one of PLAIN",
        ),
        ("sasl.enabled.mechanisms", "GSSAPI", "gssapi.sasl.jaas.config is missing"),
        ("sasl.enabled.mechanisms", "", "no client could authenticate"),
        ("listener.name.sasl_plaintext.sasl.enabled.mechanisms", "CRAM-MD5", "CRAM-MD5"),
        (_JAAS, "org.example.Login required;", "org.example.Login"),
        ("sasl.mechanism.inter.broker.protocol", "SCRAM-SHA-512", "offers PLAIN"),
        ("security.inter.broker.protocol", "PLAINTEXT", "not an advertised listener"),
        ("inter.broker.listener.name", "SASL_PLAINTEXT", "both set"),
    ],
)
def test_unsupported_sasl_config_is_refused_by_name(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listeners_of(with_settings(**{name: value}))


def test_plain_without_users_is_refused() -> None:
    settings = {**sasl_listener("PLAIN")}
    del settings[_JAAS]
    with pytest.raises(ConfigError, match=f"{_JAAS} is missing"):
        listeners_of(Config(settings))


def test_sasl_users_are_changed_dynamically() -> None:
    changed = {_JAAS: f'{_PLAIN} required user_carol="x";'}
    config = with_settings()
    check_change(config, cluster_wide={}, this_broker=changed, is_default=False)
    (listener,) = listeners_of(config.with_dynamic(cluster_wide={}, this_broker=changed))
    assert listener.sasl is not None
    assert dict(listener.sasl.passwords) == {"carol": "x"}
    with pytest.raises(ConfigError, match="semicolon"):
        check_change(config, cluster_wide={}, this_broker={_JAAS: "x"}, is_default=False)
