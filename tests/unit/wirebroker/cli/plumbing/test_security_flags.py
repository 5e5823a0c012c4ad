"""TLS and SASL connections of the verbs, by flags or settings file."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.security.tls_files import (
    authority,
    certificate,
    client_certificate,
    tls_configs,
    write,
)
from wirebroker.cli import main as cli
from wirebroker.cli.plumbing.security_flags import PASSWORD_VARIABLE
from wirebroker.client.security.security import client_security
from wirebroker.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    folder = tmp_path_factory.mktemp("secured")
    settings = {
        **tls_configs(folder),
        "listeners": LISTENERS,
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{MODULE} required user_alice="alice-secret";'
        ),
        "connection.failed.authentication.delay.ms": "1",
    }
    with ThreadedServer(config_of(folder / "data", settings=settings)) as running:
        yield running


def port(broker: ThreadedServer, listener: str) -> str:
    bound = next(candidate for candidate in broker.server.bound if candidate.name == listener)
    return f"localhost:{bound.port}"


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return write(tmp_path, "ca.pem", authority().certificate)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = cli.run(["cluster", "--timeout", "5", *arguments])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_separate_process_connects_by_tls(broker, ca) -> None:
    verb = ("cluster", "-b", port(broker, "SASL_SSL"), "--tls-ca", ca)
    login = ("--sasl-user", "alice", "--sasl-mechanism", "PLAIN")
    done = subprocess.run(
        [sys.executable, "-m", "wirebroker", *verb, *login],
        env={**os.environ, PASSWORD_VARIABLE: "alice-secret"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "localhost" in done.stdout or "127.0.0.1" in done.stdout


def test_flags_log_in_over_tls(broker, ca, capsys, monkeypatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "alice-secret")
    login = ("--tls-ca", ca, "--sasl-user", "alice", "--sasl-mechanism", "PLAIN")
    status, output = run(capsys, "-b", port(broker, "SASL_SSL"), *login)
    assert (status, "1" in output) == (0, True)


def test_client_certificate_logs_in(broker, ca, capsys, tmp_path) -> None:
    own = write(tmp_path, "alice.pem", client_certificate())
    address = ("-b", port(broker, "SSL"))
    assert run(capsys, *address, "--tls-ca", ca, "--tls-cert", own)[0] == 0
    assert run(capsys, *address, "--tls-ca", ca)[0] == 1


def test_kafka_client_properties_file_logs_in(broker, ca, capsys, tmp_path) -> None:
    text = (
        f"bootstrap.servers={port(broker, 'SASL_SSL')}\nsecurity.protocol=SASL_SSL\n"
        f"sasl.mechanism=PLAIN\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
        f'sasl.jaas.config={MODULE} required username="alice" password="alice-secret";\n'
    )
    file = write(tmp_path, "client.properties", text)
    assert run(capsys, "--client-config", file)[0] == 0
    assert run(capsys, "--config", file)[0] == 0
    wrong = write(tmp_path, "wrong.properties", text.replace("alice-secret", "wrong-secret"))
    status, output = run(capsys, "--client-config", wrong)
    assert status == 1
    assert "it rejects alice with PLAIN" in output
    assert "secret" not in output


def test_untrusted_broker_gets_no_credentials(broker, capsys, monkeypatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "alice-secret")
    login = ("--tls", "--sasl-user", "alice", "--sasl-mechanism", "PLAIN")
    status, output = run(capsys, "-b", port(broker, "SASL_SSL"), *login)
    assert status == 1
    assert "the TLS handshake failed" in output


@pytest.mark.parametrize(
    "case",
    [
        ("--tls-ca CA --sasl-user alice --sasl-mechanism PLAIN", "cannot log in at localhost:"),
        ("--tls-ca CA", "the peer closed the connection. A SASL listener needs --sasl"),
        ("", "the peer closed the connection. A TLS listener needs --tls"),
    ],
)
def test_login_failure_does_not_suggest_starting_a_broker(broker, ca, capsys, monkeypatch, case):
    flags, words = case
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    login = flags.replace("CA", ca).split()
    status, output = run(capsys, "-b", port(broker, "SASL_SSL"), *login)
    assert status == 1
    assert words in output
    assert "wirebroker serve" not in output


def test_certificate_of_another_host_is_refused(ca, capsys, tmp_path) -> None:
    elsewhere = certificate("elsewhere", hosts=("kafka.test",))
    settings = tls_configs(tmp_path) | {"listeners": "SSL://127.0.0.1:0"}
    write(tmp_path, "broker.pem", elsewhere)
    with ThreadedServer(config_of(tmp_path / "data", settings=settings)) as running:
        address = ("-b", f"127.0.0.1:{running.address[1]}")
        status, output = run(capsys, *address, "--tls-ca", ca)
        assert status == 1
        assert "certificate is not valid for '127.0.0.1'" in output
        text = "ssl.endpoint.identification.algorithm=\n"
        file = write(tmp_path, "c.properties", text)
        assert run(capsys, *address, "--tls-ca", ca, "--client-config", file)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sasl-mechanism", "PLAIN"), "needs --sasl-user"),
        (("--sasl-user", "alice"), f"set {PASSWORD_VARIABLE}"),
        (("--client-config", "/nowhere"), "/nowhere cannot be used: No such file or directory ("),
        (("--tls-ca", "/nowhere"), "/nowhere cannot be read"),
    ],
)
def test_error_messages_are_one_line(capsys, monkeypatch, arguments, words) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    status, output = run(capsys, *arguments)
    assert status == 2
    assert words in output
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security.protocol": "TLS"}, "security.protocol must be one of PLAINTEXT, SSL"),
        (
            {"security.protocol": "SASL_SSL"},
            "sasl.jaas.config is missing: for GSSAPI write com.sun.security.auth.module."
            "Krb5LoginModule required useTicketCache=true;",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "OAuthBearerLoginModule required;",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "CRAM-MD5"},
            "sasl.mechanism=CRAM-MD5 is not supported",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.type": "BKS"}, "must be one of PEM"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "SSLv3 is not one of"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "X"}, "the suite X is not supported"),
        ({"ssl.engine.factory.class": "com.example.X"}, "Java classes are not supported"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            f'for PLAIN write {MODULE} required username="NAME" password="PASSWORD";',
        ),
    ],
)
def test_unusable_settings_are_reported(settings, words) -> None:
    with pytest.raises(ConfigError) as refused:
        client_security(settings)
    assert words in str(refused.value)
