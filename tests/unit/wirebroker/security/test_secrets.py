"""No secret is told: by log lines of any level, answers, dumps, or what Python shows of objects."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.support.sasl_clients import (
    add_scram_user,
    log_in_plain,
    log_in_scram,
    sasl_listener,
    send_token,
    shake_hands,
)
from tests.support.servers import broker_of, client_of, running
from wirebroker import cli
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.raw_client import RawClient

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


async def test_users_of_plain_change_while_the_broker_runs(tmp_path: Path) -> None:
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


async def test_nothing_tells_a_secret(
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
        shown = [described.as_dict(), users.as_dict(), broker_of(server).config, server]
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    for form in ([], ["--json"]):
        assert cli.run(["dump", "--records", str(log), *form]) == 0
    told = f"{shown!r} {caplog.text} {capsys.readouterr().out}"
    assert "carol" in told
    assert "(hidden)" in told
    around = [told[max(0, told.find(each) - 200) :][:300] for each in SECRETS if each in told]
    assert not around
    for key in (keys.stored_key, keys.server_key):
        assert key.hex() not in told
        assert repr(key) not in told
