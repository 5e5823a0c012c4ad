"""Java system properties of KAFKA_OPTS: JAAS logins, and one line about the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from wirebroker.cli.plumbing.security_flags import way_to_cluster
from wirebroker.client.security.security import client_security
from wirebroker.config import Config, ConfigError
from wirebroker.config.java.jaas import LOGIN_MODULES
from wirebroker.config.java.java_options import ALLOWED_URLS, LOGIN_CONFIG, VARIABLES
from wirebroker.config.listeners.listeners import (
    between_brokers,
    controller_listeners_of,
    listeners_of,
    to_controllers,
)
from wirebroker.config.sources.sources import load_config, local_java_options

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, SCRAM = LOGIN_MODULES["PLAIN"], LOGIN_MODULES["SCRAM-SHA-256"]
KERBEROS = LOGIN_MODULES["GSSAPI"]
FILE = f"""
    KafkaServer {{
        {PLAIN} required username="all" password="p1" user_all="p1";
        {SCRAM} required username="scram" password="p2";
        {KERBEROS} required useKeyTab=true keyTab="/k" principal="kafka/h@R" serviceName=kafka;
    }};
    inside.KafkaServer {{
        {PLAIN} required username="own" password="p3" user_own="p3";
    }};
    KafkaClient {{
        {PLAIN} required username="client" password="p4";
        {SCRAM} required username="client2" password="p5" tokenauth=true;
    }};
"""
SETTINGS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": ",".join(
        f"{name}:SASL_PLAINTEXT" for name in ("INSIDE", "OUTSIDE", "CONTROLLER")
    ),
    "inter.broker.listener.name": "INSIDE",
    "controller.listener.names": "CONTROLLER",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
}
OWN = "listener.name.outside.plain.sasl.jaas.config"


def load(tmp_path: Path, file: str | None = FILE, environment=None, **flags: str) -> Config:
    path = tmp_path / "jaas.conf"
    if file is not None:
        path.write_text(file)
    variables = {"KAFKA_OPTS": f"-D{LOGIN_CONFIG}={path}", **(environment or {})}
    return load_config(file=None, environment=variables, flags=SETTINGS | flags)


def passwords(config: Config) -> dict[str, dict[str, str]]:
    listeners = [*listeners_of(config), *controller_listeners_of(config)]
    return {
        listener.name: dict(listener.sasl.passwords)
        for listener in listeners
        if listener.sasl is not None
    }


def test_listener_login_comes_from_config_then_own_then_common_section(tmp_path):
    config = load(tmp_path)
    assert passwords(config) == {
        "INSIDE": {"own": "p3"},
        "OUTSIDE": {"all": "p1"},
        "CONTROLLER": {"all": "p1"},
    }
    inside, controllers = between_brokers(config).login, to_controllers(config).login
    assert inside is not None
    assert controllers is not None
    assert (inside.user, inside.password) == ("own", "p3")
    assert (controllers.user, controllers.password) == ("scram", "p2")
    line = f'{PLAIN} required user_first="p0";'
    assert passwords(load(tmp_path, **{OWN: line}))["OUTSIDE"] == {"first": "p0"}
    changed = config.with_dynamic(cluster_wide={}, this_broker={OWN: line})
    assert passwords(changed)["OUTSIDE"] == {"first": "p0"}
    removed = changed.with_dynamic(cluster_wide={}, this_broker={})
    assert passwords(removed)["OUTSIDE"] == {"all": "p1"}
    text = repr([config.describe_broker(), config.java_options, listeners_of(config)])
    assert not [
        password for password in ("p0", "p1", "p2", "p3", "p4", "p5") if f"'{password}'" in text
    ]


def test_kerberos_keytab_comes_from_a_jaas_section(tmp_path):
    listeners = listeners_of(
        load(tmp_path, **{"listener.name.outside.sasl.enabled.mechanisms": "GSSAPI"})
    )
    (outside,) = (listener for listener in listeners if listener.name == "OUTSIDE")
    assert outside.sasl is not None
    assert outside.sasl.kerberos is not None
    assert outside.sasl.kerberos.keys.principal == "kafka/h@R"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (None, "jaas.conf cannot be used: No such file"),
        ("KafkaServer {", "line 1: it ends too early"),
        ("Client { a.B required; };", "has no section KafkaServer or inside.KafkaServer"),
        ("KafkaServer { };", "has no section KafkaServer or inside.KafkaServer"),
        (
            f"KafkaServer {{ {SCRAM} required; }};",
            f"has no {PLAIN}: it contains the users of PLAIN",
        ),
    ],
)
def test_missing_login_section_is_refused(tmp_path, file, why):
    with pytest.raises(ConfigError, match=why):
        load(tmp_path, file)
    # As in Apache Kafka: no listener needs it.
    protocols = SETTINGS["listener.security.protocol.map"].replace("SASL_", "")
    config = load(tmp_path, file, **{"listener.security.protocol.map": protocols})
    assert passwords(config) == {}


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("form", ["{}", "={}", "file:{}", "file://{}", "${{dir}}/jaas.conf"])
def test_each_start_script_variable_can_name_the_jaas_file(tmp_path, variable, form):
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    option = f"-D{LOGIN_CONFIG}={form.format(path)} -Ddir={tmp_path}"
    environment = {"KAFKA_HEAP_OPTS": "-Xmx1G", variable: option}
    config = load_config(file=None, environment=environment, flags=SETTINGS)
    assert passwords(config)["INSIDE"] == {"own": "p3"}


def test_java_properties_without_effect_cause_one_warning(tmp_path):
    options = (
        "-Djava.security.krb5.conf=/etc/krb5.conf -Xmx1G -Dsecret=hunter2 -Da"
        f" -D{LOGIN_CONFIG}=/x -D{ALLOWED_URLS}=https://identity.example.org"
    )
    environment = {"KAFKA_OPTS": options, "KAFKA_JMX_OPTS": "-Dcom.sun.management.jmxremote"}
    config = load_config(file=None, environment=environment, flags={})
    assert config.warnings() == (
        "these Java system properties have no effect in wirebroker: a,"
        " com.sun.management.jmxremote,"
        " java.security.krb5.conf (set the variable KRB5_CONFIG to that file), secret",
    )
    assert config.list(ALLOWED_URLS) == ("https://identity.example.org",)
    own = load_config(file=None, environment=environment, flags={ALLOWED_URLS: "https://x.org"})
    assert own.list(ALLOWED_URLS) == ("https://x.org",)


def test_client_login_comes_from_the_client_section(tmp_path, monkeypatch):
    load(tmp_path)
    java = local_java_options({"KAFKA_OPTS": f"-D{LOGIN_CONFIG}={tmp_path / 'jaas.conf'}"})
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login = client_security(settings, java).login
    assert login is not None
    assert (login.user, login.password) == ("client", "p4")
    with pytest.raises(click.UsageError, match=r"sasl\.jaas\.config is missing"):
        way_to_cluster(settings)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{LOGIN_CONFIG}={tmp_path / 'jaas.conf'}")
    assert way_to_cluster(settings).handshake is not None
    login = client_security(settings | {"sasl.mechanism": "SCRAM-SHA-256"}, java).login
    assert login is not None
    assert (login.user, login.by_token) == ("client2", True)
    line = {"sasl.jaas.config": f'{PLAIN} required username="x" password="y";'}
    login = client_security(settings | line, java).login
    assert login is not None
    assert login.user == "x"
    for mechanism in ("GSSAPI", "OAUTHBEARER"):
        with pytest.raises(ConfigError, match=r"sasl\.jaas\.config is missing, and so is"):
            client_security(settings | {"sasl.mechanism": mechanism}, java)
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config is missing: for PLAIN write"):
        client_security(settings)
