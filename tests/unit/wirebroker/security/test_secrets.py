"""No secret appears in log lines, responses, dumps, or representations of objects.

Secrets are passwords of users, stores and keys, and PEM keys.
"""

from __future__ import annotations

import base64
import logging
import traceback
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from tests.support.brokers.servers import broker_of, client_of, config_of, running
from tests.support.security.sasl_clients import (
    add_scram_user,
    log_in_plain,
    log_in_scram,
    sasl_listener,
    send_token,
    shake_hands,
)
from tests.support.security.tls_files import authority, certificate, tls_configs, write
from wirebroker.broker.server import Server
from wirebroker.cli import main as cli
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config import ConfigError, StartError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.security.tls.key_stores import read_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

SETTINGS = {
    **sasl_listener("PLAIN", "SCRAM-SHA-256"),
    "connection.failed.authentication.delay.ms": "1",
}
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRETS = ("alice-secret", "bob-secret", "carol-secret", "dave-secret", "wrong-secret")
BROKER = {"resource_type": 4, "resource_name": "1"}


async def set_users(client: RawClient, line: str) -> int:
    entry = {"name": JAAS, "config_operation": 0, "value": line}
    request = {"resources": [{**BROKER, "configs": [entry]}]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    code: int = answer.responses[0].error_code
    assert not any(secret in str(answer.as_dict()) for secret in SECRETS)
    return code


async def test_plain_users_change_at_runtime(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as admin:
        await log_in_plain(admin, "alice", "alice-secret")
        assert await set_users(admin, f'{MODULE} required user_dave="dave-secret";') == 0
        for user, is_let_in in (("dave", True), ("alice", False)):
            async with client_of(server) as client:
                answer = await log_in_plain(client, user, f"{user}-secret")
                assert (answer.error_code == 0) is is_let_in
        assert (await admin.ask(ApiKey.METADATA, 12, {"topics": []})).brokers
        assert await set_users(admin, f'{MODULE} user_dave="dave-secret"') != 0
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        assert not (await log_in_plain(client, "dave", "dave-secret")).error_code


async def test_no_output_contains_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as admin:
        await log_in_plain(admin, "alice", "alice-secret")
        await add_scram_user(admin, "SCRAM-SHA-256", "carol", "carol-secret")
        keys = broker_of(server).metadata.image.scram_user("carol", 1)
        assert keys is not None
        await set_users(admin, f'{MODULE} required user_alice="alice-secret" user_d="dave-secret";')
        await set_users(admin, f'{MODULE} required user_d="dave-secret')
        for log_in in (log_in_plain, lambda *a: log_in_scram(a[0], "SCRAM-SHA-256", *a[1:])):
            async with client_of(server) as client:
                assert (await log_in(client, "carol", "wrong-secret")).error_code
        async with client_of(server) as client:
            await shake_hands(client, "PLAIN")
            await send_token(client, b"\0\0\0alice-secret")
        described = await admin.ask(
            ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{**BROKER, "configuration_keys": None}]}
        )
        users = await admin.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
        exposed = [described.as_dict(), users.as_dict(), broker_of(server).config, server]
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    for form in ([], ["--json"]):
        assert cli.run(["dump", "--records", str(log), *form]) == 0
    output = f"{exposed!r} {caplog.text} {capsys.readouterr().out}"
    assert "carol" in output
    assert "(hidden)" in output
    around = [
        output[max(0, output.find(secret) - 200) :][:300] for secret in SECRETS if secret in output
    ]
    assert not around
    for key in (keys.stored_key, keys.server_key):
        assert key.hex() not in output
        assert repr(key) not in output


PASSWORDS = ("store-secret", "key-secret", "trust-secret", "another-secret")
INLINE = "listener.name.inline.ssl."
STORED = "listener.name.stored.ssl."


def key_and_chain(pem: str, password: str = "") -> tuple[str, str]:
    """Return a certificate's key, optionally encrypted, and the rest of the PEM file."""
    certificate_start = pem.index("-----BEGIN CERT")
    if not password:
        return pem[:certificate_start], pem[certificate_start:]
    key = load_pem_private_key(pem[:certificate_start].encode(), None)
    sealed = BestAvailableEncryption(password.encode())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed).decode()
    return text, pem[certificate_start:]


def secret_lines(*keys: str) -> list[str]:
    """Return lines that only a private key has, and the keys' bytes as Python displays them."""
    lines = [line for key in keys for line in key.splitlines() if not line.startswith("-----")]
    return [*lines, *(repr(base64.b64decode(line))[2:-1] for line in lines)]


def store(path: Path, password: str, key: str | None = None, chain: str | None = None) -> str:
    data = pkcs12.serialize_key_and_certificates(
        b"x",
        None if key is None else load_pem_private_key(key.encode(), None),  # type: ignore[arg-type]
        None if chain is None else load_pem_x509_certificate(chain.encode()),
        None if chain else [load_pem_x509_certificate(authority().certificate.encode())],
        BestAvailableEncryption(password.encode()),
    )
    path.write_bytes(data)
    return str(path)


def secured(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return settings of TLS listeners by file and by inline PEM; and the secrets."""
    sealed, chain = key_and_chain(certificate(), "key-secret")
    bare, bare_chain = key_and_chain(certificate("inline"))
    stored = tls_configs(folder) | {
        "ssl.keystore.location": write(folder, "sealed.pem", sealed + chain),
        "listener.name.ssl.ssl.key.password": "key-secret",
    }
    listeners = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,INLINE://127.0.0.1:0,"
        "STORED://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,INLINE:SSL,STORED:SSL",
        f"{STORED}keystore.type": "PKCS12",
        f"{STORED}keystore.location": store(folder / "keys.p12", "store-secret", bare, bare_chain),
        f"{STORED}keystore.password": "store-secret",
        f"{STORED}key.password": "store-secret",
        f"{STORED}truststore.type": "PKCS12",
        f"{STORED}truststore.location": store(folder / "trusted.p12", "trust-secret"),
        f"{STORED}truststore.password": "trust-secret",
        f"{INLINE}keystore.type": "PEM",
        f"{INLINE}keystore.location": "",
        f"{INLINE}keystore.key": bare.replace("\n", " "),
        f"{INLINE}keystore.certificate.chain": bare_chain.replace("\n", " "),
        f"{INLINE}truststore.certificates": authority().certificate.replace("\n", " "),
        f"{INLINE}truststore.type": "PEM",
        f"{INLINE}truststore.location": "",
    }
    return stored | listeners, [*PASSWORDS, *secret_lines(sealed, bare)]


async def test_no_output_contains_a_tls_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    settings, secrets = secured(tmp_path / "tls")
    fresh, fresh_chain = key_and_chain(certificate("inline", days=31))
    secrets += secret_lines(fresh)
    exposed: list[object] = []
    async with running(tmp_path / "data", settings=settings) as server, client_of(server) as admin:

        async def change(**values: str) -> int:
            configs = [
                {"name": INLINE + name.replace("_", "."), "config_operation": 0, "value": value}
                for name, value in values.items()
            ]
            request = {"resources": [{**BROKER, "configs": configs}]}
            answer = await admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
            exposed.append(answer.as_dict())
            return int(answer.responses[0].error_code)

        # Valid keys, and some that are refused for their password or at a later step.
        assert not await change(keystore_key=fresh, keystore_certificate_chain=fresh_chain)
        sealed, _ = key_and_chain(certificate("inline"), "another-secret")
        secrets += secret_lines(sealed)
        assert await change(keystore_key=sealed, key_password="store-secret")
        assert await change(keystore_key=fresh[: len(fresh) // 2])
        everything = {**BROKER, "configuration_keys": None}
        request = {"resources": [everything], "include_synonyms": True}
        exposed.append((await admin.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)).as_dict())
        listeners = listeners_of(broker_of(server).config)
        exposed += [
            broker_of(server).config,
            server,
            listeners,
            [listener.tls for listener in listeners],
        ]
        exposed += [read_store(listener.tls.keystore) for listener in listeners if listener.tls]
    log = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
    for form in ([], ["--json"]):
        assert cli.run(["dump", "--records", str(log), *form]) == 0
    output = f"{exposed!r} {caplog.text} {capsys.readouterr().out}"
    assert INLINE + "keystore.key" in output
    assert [secret[:12] for secret in secrets if secret in output] == []


@pytest.mark.parametrize(
    "broken",
    [
        {"listener.name.ssl.ssl.key.password": "another-secret"},
        {f"{INLINE}keystore.key": "-----BEGIN PRIVATE KEY----- another-secret"},
        {f"{INLINE}keystore.type": "another-secret"},
        {f"{STORED}keystore.password": "another-secret"},
    ],
)
async def test_start_errors_contain_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: dict[str, str]
) -> None:
    settings, secrets = secured(tmp_path / "tls")
    if f"{INLINE}keystore.type" in broken:
        secrets.remove("another-secret")  # here it is not a secret
    with pytest.raises((StartError, ConfigError)) as refused:
        await Server(config_of(tmp_path / "data", settings=settings | broken)).start()
    output = "".join(traceback.format_exception(refused.value)) + caplog.text
    # Source lines in the traceback are our own.
    assert [secret for secret in secrets if secret in output] == []
