"""Settings for missing protection prevent the start; defaults don't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirebroker.cli import main as cli
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.protection import (
    asking_names,
    check_directory,
    check_protection,
    is_about_protection,
)
from wirebroker.config.table import ROWS_WITHOUT_EFFECT

_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_BUILDER_NAME = "principal.builder.class"
_SOME_BUILDER = "com.example.Builder"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("super.users", "User:admin"),
        ("allow.everyone.if.no.acl.found", "false"),
        ("principal.builder.class", "com.example.Builder"),
        ("client.quota.callback.class", "com.example.Quotas"),
        ("security.providers", "com.example.Provider"),
        ("password.encoder.secret", "hunter2"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("alter.config.policy.class.name", "com.example.Policy"),
        ("ssl.engine.factory.class", "com.example.Engine"),
        ("ssl.keystore.filename", "kafka.jks"),  # Kafka's container image
        ("sasl.jaas.config", "org.example.Login required;"),
        ("listener.name.outside.ssl.engine.factory.class", "com.example.Engine"),
        ("listener.name.outside.principal.builder.class", "com.example.Builder"),
    ],
)
def test_unsupported_security_setting_is_refused_by_name(name, value):
    config = Config({name: value})
    with pytest.raises(StartError, match=re.escape(name)) as refused:
        check_protection(config)
    assert value not in str(refused.value), "it may be a secret"
    check_protection(Config({name: value, "wirebroker.unprotected": "true"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("super.users", " "),
        ("allow.everyone.if.no.acl.found", "true"),
        ("principal.builder.class", _BUILDER),
        ("connections.max.reauth.ms", "0"),
        ("security.inter.broker.protocol", "plaintext"),
        ("ssl.client.auth", "none"),
        ("ssl.enabled.protocols", "TLSv1.2, TLSv1.3"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("listener.name.outside.ssl.client.auth", "none"),
        ("delegation.token.secret.key", "hunter2"),
        ("quota.window.num", "5"),
        ("listener.name.outside.max.connections", "5"),
    ],
)
def test_explicit_default_of_a_security_setting_is_accepted(name, value):
    assert asking_names({name: value}) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connections.max.reauth.ms", "3600000"),
        ("security.inter.broker.protocol", "SASL_PLAINTEXT"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
        ("ssl.client.auth", "required"),
        ("listener.name.outside.ssl.keystore.location", "/etc/kafka/keystore.pem"),
        ("listener.name.outside.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.outside.plain.connections.max.reauth.ms", "1"),
        ("listener.name.outside.scram-sha-256.sasl.jaas.config", "x required;"),
        ("sasl.kerberos.kinit.cmd", "/opt/bin/kinit"),
        ("sasl.kerberos.min.time.before.relogin", "58000"),
        ("listener.name.outside.sasl.kerberos.ticket.renew.jitter", "0.1"),
        ("sasl.login.refresh.window.factor", "0.5"),
    ],
)
def test_supported_security_setting_is_accepted(name, value):
    assert asking_names({name: value}) == ()


def test_defaults_equal_those_of_apache_kafka():
    defaults = [name for name in ROWS_WITHOUT_EFFECT if is_about_protection(name)]
    defaults = [name for name in defaults if name.startswith(("ssl.", "sasl."))]
    assert asking_names(dict.fromkeys(defaults, "")) == ()
    assert asking_names(dict.fromkeys(defaults, "x")) == tuple(sorted(defaults))


@pytest.mark.parametrize("place", ["file", "environment", "flag"])
def test_security_setting_is_refused_from_every_source(tmp_path, monkeypatch, capsys, place):
    arguments = ["serve", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    if place == "file":
        file = tmp_path / "server.properties"
        file.write_text(f"{_BUILDER_NAME}={_SOME_BUILDER}\nssl.client.auth=required\n")
        arguments += ["--config", str(file)]
    elif place == "environment":
        monkeypatch.setenv("KAFKA_PRINCIPAL_BUILDER_CLASS", _SOME_BUILDER)
    else:
        arguments += ["--set", f"{_BUILDER_NAME}={_SOME_BUILDER}"]
    assert cli.run(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("wirebroker: principal.builder.class")
    assert "--unprotected" in error
    assert not Path(tmp_path / "data").exists()


def test_ignored_security_settings_are_logged_once():
    config = Config(
        {"super.users": "User:a", "wirebroker.unprotected": "true", "num.io.threads": "2"}
    )
    first, second = config.warnings()
    assert first.startswith("running unprotected because of wirebroker.unprotected: super.users")
    assert second == "these Kafka configs have no effect in wirebroker: num.io.threads"


def test_directory_with_acls_is_refused_unless_unprotected():
    with pytest.raises(StartError, match=r"/data contains ACLs, super\.users, which would"):
        check_directory(["ACLs", "super.users"], "/data", Config())
    check_directory(["ACLs"], "/data", Config({"wirebroker.unprotected": "true"}))
    check_directory([], "/data", Config())


def test_unprotected_is_a_boolean():
    with pytest.raises(ConfigError, match=r"wirebroker\.unprotected"):
        Config({"wirebroker.unprotected": "perhaps"})
