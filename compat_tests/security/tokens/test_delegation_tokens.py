"""Delegation tokens: requests, responses and logins as with Apache Kafka."""

from __future__ import annotations

import base64
import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.clients import java
from compat_tests.security.secured import secured_broker
from tests.support.cli.verbs import Verbs
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import add_scram_user, log_in_plain, log_in_scram
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import pause
from wirebroker.cli.plumbing.security_flags import PASSWORD_VARIABLE
from wirebroker.codecs.acls import ALLOW, LITERAL, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from compat_tests.security.secured import SecuredKafka, SecuredWirebroker

    Secured = SecuredKafka | SecuredWirebroker

TOOL: Final = "org.apache.kafka.tools.DelegationTokenCommand"
USERS: Final = ("admin", "alice", "bob")
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS: Final = {
    "delegation.token.secret.key": "hunter2",
    "authorizer.class.name": STANDARD,
    "super.users": "User:ANONYMOUS;User:admin",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": MODULE
    + "".join(f' user_{name}="{name}-secret"' for name in USERS)
    + ";",
}
CREATE, RENEW, EXPIRE, DESCRIBE = (ApiKey(number) for number in (38, 39, 40, 41))
DAY_MS: Final = 24 * 3_600_000
SCRAM: Final = "SCRAM-SHA-256"


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    with secured_broker(request.param, tmp_path_factory.mktemp("tokens"), SETTINGS) as running:
        yield running


class Clients:
    def __init__(self, port: int, secured_port: int) -> None:
        self._port, self._secured_port = port, secured_port
        self._open: dict[str, RawClient] = {}

    async def of(self, name: str) -> RawClient:
        if name not in self._open:
            if name == "nobody":
                self._open[name] = await RawClient.connect((HOST, self._port))
            else:
                client = await RawClient.connect((HOST, self._secured_port))
                self._open[name] = client
                assert (await log_in_plain(client, name, f"{name}-secret")).error_code == 0
        return self._open[name]

    async def by_token(self, name: str, token_id: str, hmac: bytes) -> Any:
        client = await self._again(name)
        password = base64.b64encode(hmac).decode()
        return await log_in_scram(client, SCRAM, token_id, password, by_token=True)

    async def by_password(self, name: str, password: str) -> Any:
        return await log_in_scram(await self._again(name), SCRAM, name, password)

    async def _again(self, name: str) -> RawClient:
        if name in self._open:
            await self._open.pop(name).close()
        self._open[name] = await RawClient.connect((HOST, self._secured_port))
        return self._open[name]

    async def create(self, by: str, version: int = 3, **fields: Any) -> Any:
        values: dict[str, Any] = {"renewers": [], "max_lifetime_ms": -1, **fields}
        answer = await (await self.of(by)).ask(CREATE, version, values)
        while not answer.error_code:  # Apache Kafka applies it with a delay
            description = await self.describe("admin")
            if answer.token_id in {token.token_id for token in description.tokens}:
                break
            await pause(0.02)
        return answer

    async def renew(self, by: str, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
        fields = {"hmac": hmac, "renew_period_ms": period_ms}
        return await (await self.of(by)).ask(RENEW, version, fields)

    async def expire(self, by: str, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
        fields = {"hmac": hmac, "expiry_time_period_ms": period_ms}
        return await (await self.of(by)).ask(EXPIRE, version, fields)

    async def describe(
        self, by: str, owners: tuple[str, ...] | None = None, version: int = 3
    ) -> Any:
        owners_field = None if owners is None else [user(owner_name) for owner_name in owners]
        return await (await self.of(by)).ask(DESCRIBE, version, {"owners": owners_field})

    async def allow(
        self, user_name: str, operation: Operation, resource: Resource, name: str
    ) -> None:
        rule = {
            "resource_type": resource,
            "resource_name": name,
            "resource_pattern_type": LITERAL,
            "principal": f"User:{user_name}",
            "host": "*",
            "operation": operation,
            "permission_type": ALLOW,
        }
        answer = await (await self.of("admin")).ask(ApiKey.CREATE_ACLS, 3, {"creations": [rule]})
        assert answer.results[0].error_code == 0

    async def close(self) -> None:
        for client in self._open.values():
            await client.close()


@contextlib.asynccontextmanager
async def clients_at(port: int, secured_port: int) -> AsyncIterator[Clients]:
    new_clients = Clients(port, secured_port)
    try:
        yield new_clients
    finally:
        await new_clients.close()


def clients_of(broker: Secured) -> contextlib.AbstractAsyncContextManager[Clients]:
    return clients_at(broker.port, broker.secured_port)


def user(name: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": name}


def owner(kind: str | None, name: str | None) -> dict[str, Any]:
    return {"owner_principal_type": kind, "owner_principal_name": name}


def told(answer: Any) -> tuple[Any, ...]:
    return (
        ErrorCode(answer.error_code),
        f"{answer.principal_type}:{answer.principal_name}",
        f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms),
        answer.token_id,
        answer.hmac,
    )


def expiry(answer: Any) -> tuple[ErrorCode, int]:
    return ErrorCode(answer.error_code), answer.expiry_timestamp_ms


NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DENIED = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
WRONG_TYPE = ErrorCode.INVALID_PRINCIPAL_TYPE
NOT_FOUND = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
MISMATCH = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
EXPIRED = ErrorCode.DELEGATION_TOKEN_EXPIRED
NOTHING = ((-1, -1, -1), "", b"")


async def test_plaintext_clients_cannot_use_tokens(secured: Secured) -> None:
    async with clients_of(secured) as clients:
        for version in (1, 2, 3):
            created = await clients.create("nobody", version)
            assert told(created)[:2] == (NOT_ALLOWED, "User:ANONYMOUS")
            assert told(created)[3:] == NOTHING
            assert (await clients.describe("nobody", None, version)).error_code == NOT_ALLOWED
        for version in (1, 2):
            for ask in (clients.renew, clients.expire):
                assert expiry(await ask("nobody", b"x", -1, version)) == (NOT_ALLOWED, -1)


async def test_token_creation_rights_and_lifetimes(secured: Secured) -> None:
    group = [{"principal_type": "Group", "principal_name": "x"}]
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    async with clients_of(secured) as clients:
        for fields, expected in (
            (owner("User", "carol"), (DENIED, "User:carol", "User:alice", *NOTHING)),
            ({"renewers": group}, (WRONG_TYPE, "User:alice", "User:alice", *NOTHING)),
            (
                {"renewers": group, **owner("User", "carol")},
                (DENIED, "User:carol", "User:alice", *NOTHING),
            ),
            (owner("Group", "alice"), (DENIED, "Group:alice", "User:alice", *NOTHING)),
            (owner(None, "bob"), (unknown, "User:ANONYMOUS", "User:ANONYMOUS", *NOTHING)),
        ):
            assert told(await clients.create("alice", **fields)) == expected
        for fields in (owner("User", "alice"), owner("User", ""), owner("", None)):
            created = await clients.create("alice", **fields)
            assert told(created)[:3] == (0, "User:alice", "User:alice")
            assert (len(created.token_id), len(created.hmac)) == (22, 64)
        for owned in ("User:carol", "Group:alice"):
            created = await clients.create("admin", **owner(*owned.split(":")))
            assert told(created)[:3] == (0, owned, "User:admin")
        for version, lifetime_ms, lasts_ms in (
            (1, -1, 7 * DAY_MS),
            (2, 0, 7 * DAY_MS),
            (3, 8 * DAY_MS, 7 * DAY_MS),
            (3, 60_000, 60_000),
        ):
            created = await clients.create("bob", version, max_lifetime_ms=lifetime_ms)
            assert created.max_timestamp_ms - created.issue_timestamp_ms == lasts_ms
            assert created.expiry_timestamp_ms - created.issue_timestamp_ms == min(lasts_ms, DAY_MS)
        await clients.allow("alice", Operation.CREATE_TOKENS, Resource.USER, "User:erin")
        await reaches(0, lambda: clients.create("alice", **owner("User", "erin")))


async def test_token_renewal_and_expiration_rights(secured: Secured) -> None:
    async with clients_of(secured) as clients:
        created = await clients.create("alice", renewers=[user("bob")])
        for_carol = await clients.create("admin", **owner("User", "carol"))
        for version in (1, 2):
            for name, error in (("alice", 0), ("bob", 0), ("admin", MISMATCH)):
                renewed = await clients.renew(name, created.hmac, 120_000, version)
                assert renewed.error_code == error
        # A requester who created it for another owner may not.
        assert expiry(await clients.renew("admin", for_carol.hmac)) == (MISMATCH, 0)
        assert expiry(await clients.expire("admin", for_carol.hmac)) == (MISMATCH, 0)
        for wrong in (b"", b"x", bytes(64)):
            assert expiry(await clients.renew("alice", wrong)) == (NOT_FOUND, 0)
            assert expiry(await clients.expire("alice", wrong)) == (NOT_FOUND, 0)
        assert (await clients.expire("bob", created.hmac, 0, 1)).error_code == 0

        async def renew_expired() -> Any:
            # Within the millisecond in which it expires, the token is renewed instead.
            await clients.expire("bob", created.hmac, 0, 1)
            return await clients.renew("alice", created.hmac)

        await reaches(EXPIRED, renew_expired)
        assert expiry(await clients.expire("alice", created.hmac, 5)) == (EXPIRED, 0)
        assert (await clients.expire("alice", created.hmac)).error_code == 0
        await reaches(NOT_FOUND, lambda: clients.expire("alice", created.hmac))


async def test_token_description_rights(secured: Secured) -> None:
    async with clients_of(secured) as clients:
        created = await clients.create("admin", renewers=[user("dave")], **owner("User", "frank"))

        async def seen(by: str, *owners: str) -> set[str]:
            answer = await clients.describe(by, owners)
            assert answer.error_code == 0
            return {token.token_id for token in answer.tokens}

        for owner_names in (("frank",), ("dave",), ("nobody", "frank")):
            assert await seen("admin", *owner_names) == {created.token_id}
            assert await seen("bob", *owner_names) == set()
        assert await seen("admin") == set()
        await clients.allow("alice", Operation.DESCRIBE_TOKENS, Resource.USER, "User:frank")
        await clients.allow("bob", Operation.DESCRIBE, Resource.DELEGATION_TOKEN, created.token_id)
        for name in ("alice", "bob"):
            while not await seen(name, "frank"):
                await pause(0.02)
        for version in (1, 2, 3):
            (token,) = (await clients.describe("bob", ("frank",), version)).tokens
            assert (token.hmac, token.expiry_timestamp) == (
                created.hmac,
                created.expiry_timestamp_ms,
            )
            assert token.token_requester_principal_name == ("admin" if version == 3 else "")
            assert [renewer.principal_name for renewer in token.renewers] == ["dave"]


async def test_token_login_acts_as_owner_and_cannot_use_other_tokens(secured: Secured) -> None:
    async with clients_of(secured) as clients:
        created = await clients.create("admin", **owner("User", "alice"))
        answer = await clients.by_token("by token", created.token_id, created.hmac)
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= DAY_MS
        refused = await clients.create("by token")
        assert told(refused) == (NOT_ALLOWED, "User:alice", "User:alice", *NOTHING)
        for ask in (clients.renew, clients.expire):
            assert expiry(await ask("by token", created.hmac)) == (NOT_ALLOWED, -1)
        assert (await clients.describe("by token")).error_code == NOT_ALLOWED
        for token_id, hmac in ((created.token_id, b"x"), ("x" * 22, created.hmac)):
            answer = await clients.by_token(token_id, token_id, hmac)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in answer.error_message


async def test_token_remains_valid_without_password_of_its_owner(secured: Secured) -> None:
    failed = ErrorCode.SASL_AUTHENTICATION_FAILED
    async with clients_of(secured) as clients:
        admin = await clients.of("admin")
        await add_scram_user(admin, SCRAM, "grace", "first")
        await reaches(0, lambda: clients.by_password("grace", "first"))
        created = await clients.create("grace")
        await add_scram_user(admin, SCRAM, "grace", "second")
        await reaches(failed, lambda: clients.by_password("grace", "first"))
        assert (await clients.by_token("by token", created.token_id, created.hmac)).error_code == 0
        deletion = {"deletions": [{"name": "grace", "mechanism": 1}], "upsertions": []}
        answer = await admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletion)
        assert answer.results[0].error_code == 0
        await reaches(failed, lambda: clients.by_password("grace", "second"))
        assert (await clients.by_token("by token", created.token_id, created.hmac)).error_code == 0
        refused = await clients.create("by token")
        assert told(refused)[:2] == (NOT_ALLOWED, "User:grace")


async def reaches(error: int, ask: Callable[[], Awaitable[Any]]) -> None:
    """Retry until a response has this error: Apache Kafka applies changes with a delay."""
    while (await ask()).error_code != error:
        await pause(0.02)


@pytest.mark.java
def test_java_clients_log_in_with_token_of_kafka_delegation_tokens(
    secured: Secured, tmp_path: Path
) -> None:
    files = {name: tmp_path / f"{name}.properties" for name in ("alice", "token", "wrong")}
    address = f"{HOST}:{secured.secured_port}"

    def tool(*arguments: str) -> str:
        return java.run(address, TOOL, "--command-config", str(files["alice"]), *arguments)

    def login(name: str, mechanism: str, module: str, user: str, password: str) -> None:
        files[name].write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
            f'username="{user}" password="{password}"'
            + (";\n" if mechanism == "PLAIN" else " tokenauth=true;\n")
        )

    login("alice", "PLAIN", "plain.PlainLoginModule", "alice", "alice-secret")
    printed = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    match = re.search(
        r"^(\S{22})\s+(\S+)\s+User:alice\s+User:alice\s+\[User:bob\]", printed, re.MULTILINE
    )
    assert match, printed
    token_id, hmac = match.groups()
    eventually(lambda: token_id in tool("--describe", "--owner-principal", "User:alice"))
    assert "Completed renew operation" in tool(
        "--renew", "--hmac", hmac, "--renew-time-period", "-1"
    )
    scram = "scram.ScramLoginModule"
    login("token", "SCRAM-SHA-512", scram, token_id, hmac)
    login("wrong", "SCRAM-SHA-512", scram, token_id, hmac[::-1])

    def list_topics(name: str) -> tuple[int, str]:
        return java.attempt(address, java.TOPICS, "--list", "--command-config", str(files[name]))

    assert list_topics("token")[0] == 0
    status, printed = list_topics("wrong")
    assert (status, "SaslAuthenticationException" in printed) == (1, True)
    assert "Completed expire operation" in tool(
        "--expire", "--hmac", hmac, "--expiry-time-period", "-1"
    )
    eventually(lambda: list_topics("token")[0] == 1)


def test_token_verb_creates_tokens_that_verbs_log_in_with(
    secured: Secured,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verbs = Verbs(f"{HOST}:{secured.secured_port}", capsys)
    monkeypatch.setenv(PASSWORD_VARIABLE, "alice-secret")
    alice = ("--sasl-user", "alice", "--sasl-mechanism", "PLAIN")
    created = verbs.json("token", "create", "--renewer", "User:bob", "--lifetime", "1d", *alice)
    token_id = created["token_id"]

    def listed() -> list[str]:
        return [token["token_id"] for token in verbs.json("token", "list", "User:bob", *alice)]

    eventually(lambda: token_id in listed())
    file = tmp_path / "token.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token_id}" password="{created["hmac"]}" tokenauth=true;\n'
    )
    assert verbs.do("cluster", "--client-config", str(file)).lines
    renewed = verbs.json("token", "renew", token_id, "--for", "1h", *alice)
    assert created["issued"] < renewed["expires"] < created["ends"]
    verbs.do("token", "expire", token_id, *alice)
    eventually(lambda: token_id not in listed())
