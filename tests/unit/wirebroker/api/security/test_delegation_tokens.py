"""Delegation tokens on a whole broker: creation, login, description, renewal, expiry, secrecy."""

from __future__ import annotations

import asyncio
import base64
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import client_of, controller_of, running
from tests.support.records.clocks import MovedClock
from tests.support.security.sasl_clients import log_in_plain, log_in_scram, sasl_listener
from wirebroker.base.clock import Slices
from wirebroker.cli import main as cli
from wirebroker.codecs.acls import ALLOW, LITERAL, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.quorum.controller.controller_duties import ControllerDuties

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

SETTINGS = {
    **sasl_listener("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "connection.failed.authentication.delay.ms": "1",
    "delegation.token.secret.key": "hunter2",
}
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DAY_MS = 24 * 3_600_000


async def create(client: RawClient, *, owner: str | None = None, renewers: Any = ()) -> Any:
    names = [{"principal_type": "User", "principal_name": name} for name in renewers]
    fields: dict[str, Any] = {"renewers": names, "max_lifetime_ms": -1}
    fields["owner_principal_type"] = "User" if owner else None
    fields["owner_principal_name"] = owner
    return await client.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, fields)


async def describe(client: RawClient, *owners: str) -> Any:
    named = [{"principal_type": "User", "principal_name": owner} for owner in owners]
    return await client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": named or None})


async def renew(client: RawClient, hmac: bytes) -> Any:
    fields = {"hmac": hmac, "renew_period_ms": -1}
    return await client.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, fields)


async def expire(client: RawClient, hmac: bytes, period_ms: int = -1) -> Any:
    fields = {"hmac": hmac, "expiry_time_period_ms": period_ms}
    return await client.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, fields)


async def log_in(client: RawClient, token: Any, mechanism: str = "SCRAM-SHA-256") -> Any:
    password = base64.b64encode(token.hmac).decode()
    return await log_in_scram(client, mechanism, token.token_id, password, by_token=True)


async def test_token_authenticates_as_its_owner_until_it_expires(tmp_path: Path) -> None:
    clock = MovedClock()
    async with running(tmp_path, settings=SETTINGS, clock=clock) as server:
        async with client_of(server) as client:
            await log_in_plain(client, "alice", "alice-secret")
            token = await create(client)
            assert token.error_code == 0
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256"):
            async with client_of(server) as client:
                answer = await log_in(client, token, mechanism)
                assert answer.error_code == 0
                # The session ends with the token, although other logins here have no session
                # lifetime.
                assert 0 < answer.session_lifetime_ms <= DAY_MS
                assert (await client.ask(ApiKey.METADATA, 12, {"topics": []})).brokers
                assert (await create(client)).error_code == NOT_ALLOWED
                assert (await describe(client)).error_code == NOT_ALLOWED
                assert (await renew(client, token.hmac)).error_code == NOT_ALLOWED
                assert (await expire(client, token.hmac)).error_code == NOT_ALLOWED
        clock.passed_ms = DAY_MS + 1
        async with client_of(server) as client:
            assert (await log_in(client, token)).error_code != 0
            assert await client.is_closed()


async def test_tokens_survive_a_restart_but_not_a_key_change(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await log_in_plain(client, "alice", "alice-secret")
        token = await create(client)
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        assert (await log_in(client, token)).error_code == 0
    for key in ("", "another"):
        changed = SETTINGS | {"delegation.token.secret.key": key}
        async with running(tmp_path, settings=changed) as server, client_of(server) as client:
            assert (await log_in(client, token)).error_code != 0


@pytest.mark.parametrize("change", ["id", "hmac", "no token"])
async def test_wrong_hmac_or_token_id_is_an_authentication_failure(
    tmp_path: Path, change: str
) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        async with client_of(server) as client:
            await log_in_plain(client, "alice", "alice-secret")
            token = await create(client)
        claimed = SimpleNamespace(token_id=token.token_id, hmac=token.hmac)
        if change == "id":
            claimed.token_id = "x" * 22
        elif change == "hmac":
            claimed.hmac = bytes(64)
        async with client_of(server) as client:
            if change == "no token":  # a token's id is not a user name
                answer = await log_in_scram(
                    client, "SCRAM-SHA-256", token.token_id, base64.b64encode(token.hmac).decode()
                )
            else:
                answer = await log_in(client, claimed)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "due to invalid credentials with SASL mechanism SCRAM" in answer.error_message


async def test_token_of_a_non_user_principal_cannot_log_in(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await log_in_plain(client, "alice", "alice-secret")
        fields = {"renewers": [], "max_lifetime_ms": -1, "owner_principal_type": "Group"}
        token = await client.ask(
            ApiKey.CREATE_DELEGATION_TOKEN, 3, fields | {"owner_principal_name": "bob"}
        )
        assert (token.error_code, token.principal_type) == (0, "Group")
        async with client_of(server) as another:
            assert (await log_in(another, token)).error_code != 0


async def test_unauthenticated_listener_refuses_token_requests(tmp_path: Path) -> None:
    settings = {"delegation.token.secret.key": "hunter2"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        made = await create(client)
        assert (made.error_code, made.principal_name) == (NOT_ALLOWED, "ANONYMOUS")
        assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (-1, -1)
        for answer in (await renew(client, b"x"), await expire(client, b"x")):
            assert (answer.error_code, answer.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
        assert (await describe(client)).error_code == NOT_ALLOWED


async def test_without_a_secret_key_tokens_are_reported_disabled(tmp_path: Path) -> None:
    settings = SETTINGS | {"delegation.token.secret.key": ""}
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await log_in_plain(client, "alice", "alice-secret")
        for answer in (
            await create(client),
            await renew(client, b"x"),
            await expire(client, b"x"),
            await describe(client),
        ):
            assert answer.error_code == disabled


async def test_acls_decide_who_describes_and_creates_tokens(tmp_path: Path) -> None:
    settings = SETTINGS | {"authorizer.class.name": STANDARD, "super.users": "User:alice"}
    denied = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    async with (
        running(tmp_path, settings=settings) as server,
        client_of(server) as alice,
        client_of(server) as bob,
    ):
        await log_in_plain(alice, "alice", "alice-secret")
        await log_in_plain(bob, "bob", "bob-secret")
        made = {
            "carol": await create(alice, owner="carol"),
            "dave": await create(alice, owner="dave", renewers=["bob"]),
            "bob": await create(bob),
        }
        assert [created.error_code for created in made.values()] == [0, 0, 0]
        refused = await create(bob, owner="carol")
        assert (refused.error_code, refused.principal_name) == (denied, "carol")

        async def seen(*owners: str) -> set[str]:
            answer = await describe(bob, *owners)
            assert answer.error_code == 0
            return {token.principal_name for token in answer.tokens}

        async def allow(operation: Operation, resource: Resource, name: str) -> None:
            rule = {
                "resource_type": resource,
                "resource_name": name,
                "resource_pattern_type": LITERAL,
                "principal": "User:bob",
                "host": "*",
                "operation": operation,
                "permission_type": ALLOW,
            }
            await alice.ask(ApiKey.CREATE_ACLS, 3, {"creations": [rule]})

        assert await seen() == {"bob", "dave"}
        assert await seen("carol") == set()
        assert await seen("alice") == {"dave"}
        await allow(Operation.DESCRIBE, Resource.DELEGATION_TOKEN, made["carol"].token_id)
        assert await seen() == {"bob", "dave", "carol"}
        await allow(Operation.CREATE_TOKENS, Resource.USER, "User:erin")
        assert (await create(bob, owner="erin")).error_code == 0
        assert (await create(alice, owner="erin")).error_code == 0
        assert len((await describe(bob, "erin")).tokens) == 1
        await allow(Operation.DESCRIBE_TOKENS, Resource.USER, "User:erin")
        assert len((await describe(bob, "erin")).tokens) == 2
        (token,) = (await describe(alice, "dave")).tokens
        assert token.hmac == made["dave"].hmac
        assert token.token_requester_principal_name == "alice"
        assert [renewer.principal_name for renewer in token.renewers] == ["bob"]
        empty = await alice.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": []})
        assert (empty.error_code, empty.tokens) == (0, [])


async def test_controller_removes_expired_tokens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = MovedClock()
    async with (
        running(tmp_path, settings=SETTINGS, clock=clock) as server,
        client_of(server) as client,
    ):
        await log_in_plain(client, "alice", "alice-secret")
        token = await create(client)
        duties = ControllerDuties(controller_of(server))
        await duties.remove_expired_tokens()
        assert len((await describe(client)).tokens) == 1
        clock.passed_ms = DAY_MS + 1
        assert len((await describe(client)).tokens) == 1
        await duties.remove_expired_tokens()
        await duties.stop()
        assert not (await describe(client)).tokens
        assert f"delegation token {token.token_id} of User:alice has expired" in caplog.text


async def test_failed_token_removal_is_logged_and_needs_a_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def submit(_operation: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk")

    config = Config({"log.dirs": "data"})
    controller: Any = SimpleNamespace(submit=submit, rules=SimpleNamespace(config=config))
    duties = ControllerDuties(controller)
    assert "remove expired tokens" not in {task.get_name() for task in duties._tasks}
    await duties.remove_expired_tokens()
    await duties.stop()
    assert "cannot remove expired delegation tokens now" in caplog.text


async def test_hmac_and_secret_key_appear_nowhere_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await log_in_plain(client, "alice", "alice-secret")
        token = await create(client)
        async with client_of(server) as another:
            await log_in(another, token)
        async with client_of(server) as another:
            await log_in(another, SimpleNamespace(token_id=token.token_id, hmac=b"x"))
        configs = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        described = await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [configs]})
        config_text = f"{described.as_dict()!r} {server.config!r}"
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    for form in ([], ["--json"]):
        assert cli.run(["dump", "--records", str(log), *form]) == 0
    output = f"{config_text} {caplog.text} {capsys.readouterr().out}"
    assert token.token_id in output
    assert "delegation.token.secret.key" in config_text
    hmac = token.hmac
    assert not [
        secret
        for secret in ("hunter2", hmac.hex(), repr(hmac)[2:-1], base64.b64encode(hmac).decode())
        if secret in output
    ]


async def test_many_owners_do_not_block_other_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await log_in_plain(client, "alice", "alice-secret")
        await create(client)
        monkeypatch.setattr(Slices, "SECONDS", 0.0)
        turns = 0
        counts = True

        def count() -> None:
            nonlocal turns
            turns += 1
            if counts:
                asyncio.get_running_loop().call_soon(count)

        count()
        (token,) = (
            await describe(client, *(f"user-{number}" for number in range(500)), "alice")
        ).tokens
        counts = False
        assert turns > 500
        assert token.principal_name == "alice"


@pytest.mark.parametrize("is_logged_in", [True, False])
async def test_responses_format_owners_like_requests(tmp_path: Path, *, is_logged_in: bool) -> None:
    """A type may contain a colon, and type and name together may exceed the longest string."""
    settings = SETTINGS if is_logged_in else None
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        if is_logged_in:
            await log_in_plain(client, "alice", "alice-secret")
        for kind, name in (("a:b", "c"), ("User:*", "n" * 32_767), ("k" * 32_767, "n" * 32_767)):
            fields = {"owner_principal_type": kind, "owner_principal_name": name}
            body = {**fields, "renewers": [], "max_lifetime_ms": -1}
            answer = await client.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, body)
            assert (answer.principal_type, answer.principal_name) == (kind, name)
