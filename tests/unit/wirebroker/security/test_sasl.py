"""A SASL listener serves different requests before and after a client authenticates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import (
    CLIENT_NONCE,
    PLAIN_USERS,
    add_scram_user,
    log_in_plain,
    log_in_scram,
    sasl_listener,
    send_token,
    shake_hands,
)
from tests.support.security.tls_files import tls_configs
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import until
from tests.unit.wirebroker.base.test_threads import blocked
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.base.threads import Work
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.scram import salted_password
from wirebroker.config import Config
from wirebroker.security.sasl.first_users import first_users

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from wirebroker.broker.server import Server

PLAIN = sasl_listener("PLAIN")
SCRAM = {
    **sasl_listener("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"),
    "connection.failed.authentication.delay.ms": "1",
}
BETWEEN_BY_TLS = {"security.inter.broker.protocol": "SSL"}
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


@contextlib.asynccontextmanager
async def connected(
    directory: Path, settings: dict[str, str], clock: SystemClock | None = None
) -> AsyncIterator[tuple[Server, RawClient]]:
    async with (
        running(directory, settings=settings, clock=clock) as server,
        client_of(server) as client,
    ):
        yield server, client


async def is_served(client: RawClient) -> bool:
    answer = await client.ask(ApiKey.METADATA, 12, {"topics": []})
    return len(answer.brokers) == 1


async def test_correct_password_is_accepted(tmp_path: Path) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        versions = await client.ask(
            ApiKey.API_VERSIONS, 3, {"client_software_name": "raw", "client_software_version": "1"}
        )
        assert {api.api_key for api in versions.api_keys} >= {17, 36, 50, 51}
        shaken = await shake_hands(client, "PLAIN")
        assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN"])
        answer = await send_token(client, b"\0alice\0alice-secret")
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
        assert await is_served(client)
        again = await shake_hands(client, "PLAIN")
        assert (again.error_code, again.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


async def test_removed_listener_accepts_no_connection_while_keys_load(tmp_path: Path) -> None:
    """Not even while the keys of the other listeners are loaded."""
    both = f"SSL://{HOST}:0,SASL_PLAINTEXT://{HOST}:0"
    settings = {**PLAIN, **tls_configs(tmp_path), "listeners": both}
    async with running(tmp_path / "data", settings=settings) as server:
        assert server.listeners is not None
        port = server.listeners["SASL_PLAINTEXT"].port
        tls_only = Config({**settings, "listeners": f"SSL://{HOST}:0"} | BETWEEN_BY_TLS)
        async with blocked(Work.LISTENERS):
            change = asyncio.create_task(server.reception.use_config(tls_only))
            await next_turn()
            with pytest.raises(ConnectionError):
                await asyncio.open_connection(HOST, port)
            assert not change.done()
        await change


async def test_clients_from_before_kip_152_are_served(tmp_path: Path) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        await shake_hands(client, "PLAIN", version=0)
        token = b"alice\0alice\0alice-secret"
        client._writer.write(len(token).to_bytes(4) + token)
        assert await client._reader.readexactly(4) == bytes(4)
        assert await is_served(client)
    async with connected(tmp_path, PLAIN) as (_, client):
        await shake_hands(client, "PLAIN", version=0)
        client._writer.write((5).to_bytes(4) + b"\0a\0no")
        assert await client.is_closed()


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0alice-secret", "different from username"),
        (b"\xff\0alice\0x", "due to invalid credentials with SASL mechanism PLAIN"),
        (bytes(500_000), "due to invalid credentials with SASL mechanism PLAIN"),
        (b"nothing", "Authentication failed during authentication due to invalid credentials"),
    ],
)
async def test_wrong_credentials_are_refused_and_the_connection_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, token: bytes, said: str
) -> None:
    caplog.set_level(logging.INFO, logger="wirebroker")
    quick = {**PLAIN, "connection.failed.authentication.delay.ms": "1"}
    async with connected(tmp_path, quick) as (_, client):
        await shake_hands(client, "PLAIN")
        answer = await send_token(client, token)
        assert answer.error_code == FAILED
        assert said in answer.error_message
        assert await client.is_closed()
    lines = [
        record.message for record in caplog.records if "authentication failed" in record.message
    ]
    assert len(lines) == 1
    assert not [word for word in ("wrong", "alice-secret") if word in caplog.text]


async def test_unknown_mechanism_is_answered_with_the_enabled_ones(tmp_path: Path) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        answer = await shake_hands(client, "GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN"]
        assert await client.is_closed()


@pytest.mark.parametrize("after_handshake", [False, True])
async def test_requests_before_authentication_close_the_connection(
    tmp_path: Path, after_handshake: bool
) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        if after_handshake:
            await shake_hands(client, "PLAIN")
        await client.send(ApiKey.METADATA, 12, {"topics": []})
        assert await client.is_closed()


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, ApiKey.VOTE, ApiKey.BROKER_HEARTBEAT])
async def test_unserved_api_before_authentication_closes_the_connection(
    tmp_path: Path, key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        header = key.to_bytes(2) + bytes(2) + bytes(4) + b"\xff\xff\x00"
        client._writer.write(len(header).to_bytes(4) + header)
        assert await client.is_closed()
    # One line, and not as an internal error.
    assert [record.levelname for record in caplog.records if "closing" in record.message] == [
        "WARNING"
    ]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_requests_before_authentication_are_limited_in_size_and_number(
    tmp_path: Path,
) -> None:
    small = {**PLAIN, "sasl.server.max.receive.size": "1000"}
    async with connected(tmp_path, small) as (server, client):
        await shake_hands(client, "PLAIN")
        await client.send(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": bytes(1000)})
        assert await client.is_closed()
        async with client_of(server) as patient:
            for _ in range(16):
                await patient.ask(ApiKey.API_VERSIONS, 0, {})
            await patient.send(ApiKey.API_VERSIONS, 0, {})
            assert await patient.is_closed()
        async with client_of(server) as authenticated:
            await log_in_plain(authenticated, "alice", PLAIN_USERS["alice"])
            topics = [{"topic_id": bytes(16), "name": "t" * 200} for _ in range(20)]
            assert await authenticated.ask(ApiKey.METADATA, 12, {"topics": topics})


async def test_authentication_deadline_closes_the_connection(tmp_path: Path) -> None:
    late = {**PLAIN, "wirebroker.authentication.deadline.ms": "300"}
    async with connected(tmp_path, late) as (server, client), client_of(server) as authenticated:
        assert not (await log_in_plain(authenticated, "alice", "alice-secret")).error_code
        await shake_hands(client, "PLAIN")
        assert await client.is_closed()
        assert await is_served(authenticated)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram_users_are_stored_in_the_metadata(tmp_path: Path, mechanism: str) -> None:
    async with connected(tmp_path, SCRAM) as (server, admin):
        await log_in_plain(admin, "alice", "alice-secret")
        assert (await add_scram_user(admin, mechanism, "carol", "carol-secret")).error_code == 0
        for user, password, code in (
            ("carol", "carol-secret", 0),
            ("carol", "other", FAILED),
            ("nobody", "carol-secret", FAILED),
        ):
            async with client_of(server) as client:
                answer = await log_in_scram(client, mechanism, user, password)
                assert answer.error_code == code
                if code:
                    assert await client.is_closed()
                else:
                    assert answer.auth_bytes.startswith(b"v=")
                    assert await is_served(client)
    async with connected(tmp_path, SCRAM) as (_, client):
        assert not (await log_in_scram(client, mechanism, "carol", "carol-secret")).error_code


async def test_unknown_users_get_a_constant_salt_and_iterations(tmp_path: Path) -> None:
    async with connected(tmp_path, SCRAM) as (server, admin):
        await log_in_plain(admin, "alice", "alice-secret")
        await add_scram_user(admin, "SCRAM-SHA-256", "carol", "carol-secret")
        firsts: dict[str, list[str]] = {}
        for user in ("carol", "nobody", "carol", "nobody"):
            async with client_of(server) as client:
                await shake_hands(client, "SCRAM-SHA-256")
                answer = await send_token(client, f"n,,n={user},r={CLIENT_NONCE}".encode())
                assert answer.error_code == 0
                nonce, salt, iterations = answer.auth_bytes.decode().split(",")
                assert nonce.startswith(f"r={CLIENT_NONCE}")
                firsts.setdefault(user, []).append(f"{salt},{iterations}")
    assert [len(set(answers)) for answers in firsts.values()] == [1, 1]


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        pytest.param(f"{CLIENT_NONCE}{{nonce}}", "librdkafka before 2.6.1", id="its own twice"),
        pytest.param(f"{CLIENT_NONCE}x", "returned another nonce", id="another"),
    ],
)
async def test_log_names_the_fault_of_a_nonce(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: str, line: str
) -> None:
    caplog.set_level(logging.INFO, logger="wirebroker")
    async with connected(tmp_path, SCRAM) as (server, admin):
        await log_in_plain(admin, "alice", "alice-secret")
        await add_scram_user(admin, "SCRAM-SHA-256", "carol", "carol-secret")
        async with client_of(server) as client:
            await shake_hands(client, "SCRAM-SHA-256")
            first = await send_token(client, f"n,,n=carol,r={CLIENT_NONCE}".encode())
            nonce = first.auth_bytes.decode().split(",")[0].removeprefix("r=")
            final = f"c=biws,r={sent.format(nonce=nonce)},p={'A' * 43}="
            answer = await send_token(client, final.encode())
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [message for message in caplog.messages if line in message and "carol" in message]


async def salt_of_nobody(server: Server) -> bytes:
    async with client_of(server) as client:
        await shake_hands(client, "SCRAM-SHA-256")
        answer = await send_token(client, f"n,,n=nobody,r={CLIENT_NONCE}".encode())
    return bytes(answer.auth_bytes.split(b",")[1])


async def test_salt_of_unknown_users_survives_a_restart(tmp_path: Path) -> None:
    salts = set[bytes]()
    for _ in range(2):
        async with connected(tmp_path / "data", SCRAM) as (server, _):
            salts.add(await salt_of_nobody(server))
    assert len(salts) == 1
    async with connected(tmp_path / "other", SCRAM) as (server, _):
        salts.add(await salt_of_nobody(server))
    assert len(salts) == 2, "no other cluster's"


async def test_salts_have_the_format_of_kafka_tools(tmp_path: Path) -> None:
    (record,) = first_users(["SCRAM-SHA-256=[name=carol,password=carol-secret]"])
    async with connected(tmp_path, SCRAM) as (server, _):
        salts = {record.body.salt}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            async with client_of(server) as client:
                await shake_hands(client, mechanism)
                answer = await send_token(client, f"n,,n=nobody,r={CLIENT_NONCE}".encode())
                salts.add(base64.b64decode(answer.auth_bytes.split(b",")[1].removeprefix(b"s=")))
    # Each user has a salt for each mechanism, all in the format of Kafka tools.
    assert len(salts) == 3
    assert all(re.fullmatch(rb"[1-9a-z][0-9a-z]{15,25}", salt) for salt in salts), salts


async def test_unknown_users_get_iteration_counts_of_existing_users(tmp_path: Path) -> None:
    """Unknown users get the iteration counts of the stored credentials, in the same proportions."""
    name = "SCRAM-SHA-256"
    # Like a client whose salts are bytes.
    few = {"name": "carol", "mechanism": 1, "iterations": 8192, "salt": bytes(range(16))}
    few["salted_password"] = salted_password(1, "carol-secret", bytes(range(16)), 8192)

    async def look(server: Server, *users: str) -> Counter[tuple[bytes, int]]:
        counts: Counter[tuple[bytes, int]] = Counter()
        for user in users:
            async with client_of(server) as client:
                await shake_hands(client, name)
                first = (
                    await send_token(client, f"n,,n={user},r={CLIENT_NONCE}".encode())
                ).auth_bytes
                _, salt, iterations = first.split(b",")
                counts[iterations, len(base64.b64decode(salt[2:]))] += 1
        return counts

    nobodies = [f"nobody-{number}" for number in range(64)]
    async with connected(tmp_path, SCRAM) as (server, admin):
        await log_in_plain(admin, "alice", "alice-secret")
        assert set(await look(server, *nobodies[:4])) <= {
            (b"i=4096", length) for length in range(16, 27)
        }
        request = {"deletions": [], "upsertions": [few]}
        answer = await admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert not answer.results[0].error_code
        assert await look(server, "carol") == {(b"i=8192", 16): 1}
        assert await look(server, *nobodies[:8]) == {(b"i=8192", 16): 8}
        assert not (await add_scram_user(admin, name, "dave", "dave-secret")).error_code
        again = await look(server, *nobodies)
        assert 10 < again[b"i=8192", 16] < 54
        assert await look(server, *nobodies) == again
        deletion = {"deletions": [{"name": "carol", "mechanism": 1}], "upsertions": []}
        await admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletion)
        assert await look(server, "carol", *nobodies) == await look(server, "carol", *nobodies)
        assert (b"i=8192", 16) not in await look(server, "carol", *nobodies)


class LaterClock(SystemClock):
    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


async def test_login_expires_unless_renewed(tmp_path: Path) -> None:
    clock = LaterClock()
    ending = {**PLAIN, "connections.max.reauth.ms": "60000"}
    async with connected(tmp_path, ending, clock) as (server, client):
        answer = await log_in_plain(client, "alice", "alice-secret")
        assert answer.session_lifetime_ms == 60_000
        clock.ahead_s += 50
        assert await is_served(client)
        answer = await log_in_plain(client, "alice", "alice-secret")
        assert answer.session_lifetime_ms == 60_000
        clock.ahead_s += 50
        assert await is_served(client)
        async with client_of(server) as other:
            await log_in_plain(other, "alice", "alice-secret")
            clock.ahead_s += 2
            answer = await log_in_plain(other, "bob", "bob-secret")
            assert answer.error_code == FAILED
            assert "Cannot change principals during re-authentication" in answer.error_message
            assert await other.is_closed()
        clock.ahead_s += 50
        await client.send(ApiKey.METADATA, 12, {"topics": []})
        assert await client.is_closed()


async def test_describe_configs_shows_no_secret(tmp_path: Path) -> None:
    async with connected(tmp_path, PLAIN) as (_, client):
        await log_in_plain(client, "alice", "alice-secret")
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        request = {"resources": [resource], "include_synonyms": True}
        answer = await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
        configs = {config.name: config for config in answer.results[0].configs}
        jaas = configs["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
        assert (jaas.value, jaas.is_sensitive, jaas.config_type) == (None, True, 9)
        assert "alice-secret" not in str(answer.as_dict())


async def test_each_listener_requires_a_login_by_its_own_protocol(tmp_path: Path) -> None:
    both = {**PLAIN, "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}
    async with running(tmp_path, settings=both) as server:
        protected, unprotected = [("127.0.0.1", listener.port) for listener in server.bound]
        client = await RawClient.connect(protected)
        await client.send(ApiKey.METADATA, 12, {"topics": []})
        assert await client.is_closed()
        await client.close()
        client = await RawClient.connect(unprotected)
        assert await is_served(client)
        await client.close()


@pytest.mark.parametrize("version", [0, 1], ids=["bare messages", "SaslAuthenticate"])
async def test_client_leaving_before_the_refusal_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    caplog.set_level(logging.INFO, logger="wirebroker")
    settings = {**PLAIN, "connection.failed.authentication.delay.ms": "10000"}
    message = b"\0alice\0wrong"
    async with connected(tmp_path, settings) as (server, client):
        await shake_hands(client, "PLAIN", version)
        if version:
            await client.send(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})
        else:
            client._writer.write(len(message).to_bytes(4) + message)
        await until(lambda: "authentication failed" in caplog.text)
        await client.close()
        await until(lambda: not len(server.reception.table or ()))
    assert caplog.text.count("authentication failed") == 1
