"""A whole broker with ACLs, whose changes also apply to prepared requests."""

from __future__ import annotations

import asyncio
import logging
import sys
import tracemalloc
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import client_of, controller_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import create_topic, fetch, produce
from tests.support.records.batches import batch
from tests.support.tools.ports import free_ports
from wirebroker.authorization.access import Authorization
from wirebroker.authorization.authorizer import StandardAuthorizer
from wirebroker.authorization.broker_rules import BROKER_RULES, CHECKED_BY_HANDLER
from wirebroker.codecs.acls import (
    ALL_OPERATIONS,
    ALLOW,
    ANY,
    CLUSTER_NAME,
    DENY,
    EVERYBODY,
    LITERAL,
    Operation,
    Resource,
    entry_of,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.client_frames import request_header
from wirebroker.codecs.envelope import Principal, encode_host, encode_principal
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_response, encode_request, request_message
from wirebroker.codecs.permissions import DESCRIBE_TOPIC, WRITE_TOPIC, Permission
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.image.image_change import AclChange
from wirebroker.coordinator.controller.requests.request import ControllerRequest, Requester
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from wirebroker.authorization.authorizer import Action, Client

SETTINGS = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def rule(
    operation: int, *, permission: int = DENY, name: str = "t", **fields: Any
) -> dict[str, Any]:
    return {
        "resource_type": Resource.TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": EVERYBODY,
        "host": "*",
        "operation": operation,
        "permission_type": permission,
        **fields,
    }


async def add(client: RawClient, *rules: dict[str, Any]) -> None:
    answer = await client.ask(ApiKey.CREATE_ACLS, 3, {"creations": rules})
    assert not any(result.error_code for result in answer.results)


async def remove_all(client: RawClient) -> None:
    await client.ask(ApiKey.DELETE_ACLS, 3, {"filters": [EVERYTHING]})


async def test_revoked_acl_affects_prepared_produce_requests(tmp_path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await create_topic(client, "t")
        for _ in range(4):  # from the second on the fast path is taken
            assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == 0
        async with client_of(server) as admin:
            await add(admin, rule(Operation.WRITE))
            for _ in range(2):
                assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == DENIED
            await remove_all(admin)
        assert (await produce(client, "t", batch(b"a"), acks=1)).base_offset == 4


async def test_revoked_acl_affects_a_consumer(tmp_path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await create_topic(client, "t")
        await produce(client, "t", batch(b"a"), acks=1)
        assert (await fetch(client, "t", 0)).error_code == 0
        await add(client, rule(Operation.READ))
        denied = await fetch(client, "t", 0)
        assert (denied.error_code, denied.records) == (DENIED, b"")


async def test_acls_survive_a_restart(tmp_path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await create_topic(client, "t")
        await add(client, rule(Operation.WRITE))
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == DENIED
    only = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    async with running(tmp_path, settings=only) as server, client_of(server) as client:
        assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == 0


async def test_envelope_request_is_authorized_as_its_principal(tmp_path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        allowed: dict[str, Any] = {
            "permission": ALLOW,
            "principal": "User:alice",
            "host": "10.0.0.1",
        }
        await add(client, rule(Operation.CREATE, **allowed))
        cluster: dict[str, Any] = {"resource_type": Resource.CLUSTER, "permission": ALLOW}
        cluster["principal"] = "User:x"
        await add(client, rule(ALL_OPERATIONS, name=CLUSTER_NAME, **cluster))

        async def create(name: str, host: str) -> int:
            topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
            body = request_message(ApiKey.CREATE_TOPICS).struct_class(topics=topics)
            requester = Requester(Principal("User", name), host)
            request = ControllerRequest(ApiKey.CREATE_TOPICS, 7, body, requester)
            (topic,) = (await controller_of(server).handle(request))["topics"]
            return int(topic.get("error_code", 0))

        assert await create("bob", "10.0.0.1") == DENIED
        assert await create("alice", "10.0.0.2") == DENIED
        assert await create("alice", "10.0.0.1") == 0


EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


@pytest.mark.parametrize("has_authorizer", [True, False])
async def test_controller_listener_describes_acls_like_a_broker(tmp_path, has_authorizer):
    both = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        **(SETTINGS if has_authorizer else {}),
    }
    async with running(tmp_path, settings=both) as server, client_of(server) as client:
        if has_authorizer:
            await add(client, rule(Operation.WRITE), rule(Operation.READ, name="u"))
        (endpoint,) = server.controllers
        controller = await RawClient.connect((endpoint.host, endpoint.port))
        answers = [
            await connection.ask(ApiKey.DESCRIBE_ACLS, 3, EVERYTHING)
            for connection in (client, controller)
        ]
        assert answers[0].as_dict() == answers[1].as_dict()
        assert len(answers[1].resources) == (2 if has_authorizer else 0)
        assert answers[1].error_code == (0 if has_authorizer else ErrorCode.SECURITY_DISABLED)
        if has_authorizer:
            cluster = {"resource_type": Resource.CLUSTER}
            await add(client, rule(Operation.DESCRIBE, name=CLUSTER_NAME, **cluster))
            refused = await controller.ask(ApiKey.DESCRIBE_ACLS, 3, EVERYTHING)
            assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await controller.close()


async def test_envelope_requires_cluster_action(tmp_path):
    both = SETTINGS | {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
    }
    topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
    body = encode_request(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 30_000})
    envelope = {
        "request_data": request_header(ApiKey.CREATE_TOPICS, 7, 9, b"me") + body,
        "request_principal": encode_principal(Principal("User", "another user")),
        "client_host_address": encode_host("10.0.0.1"),
    }
    frame = request_header(ApiKey.ENVELOPE, 0, 7, b"") + encode_request(
        ApiKey.ENVELOPE, 0, envelope
    )
    async with running(tmp_path, settings=both) as server, client_of(server) as client:
        (at,) = server.controllers
        reader, writer = await asyncio.open_connection(at.host, at.port)

        async def forward() -> Any:
            writer.write(len(frame).to_bytes(4) + frame)
            answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            return decode_response(ApiKey.ENVELOPE, 0, answer, 5)  # after its header

        assert (await forward()).error_code == 0
        (made,) = controller_of(server).follower.image.topics.values()
        cluster = {"resource_type": Resource.CLUSTER}
        await add(client, rule(Operation.CLUSTER_ACTION, name=CLUSTER_NAME, **cluster))
        await client.ask(
            ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": made.name}], "timeout_ms": 30_000}
        )
        answer = await forward()
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not answer.response_data
        assert not controller_of(server).follower.image.topics
        writer.close()
        await writer.wait_closed()


async def test_denials_are_logged_at_info_and_allowed_requests_at_debug(tmp_path, caplog):
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await create_topic(client, "t")
        await add(client, rule(Operation.WRITE))
        caplog.clear()
        await produce(client, "t", batch(b"a"), acks=1)
        (line,) = caplog.messages
        assert line.startswith(
            "Principal = User:ANONYMOUS is Denied operation = Write from host = 127.0.0.1 on "
            "resource = Topic:LITERAL:t for request = Produce with resourceRefCount = 1 based on "
            "rule MatchingAcl("
        )
        await add(client, rule(Operation.READ, permission=ALLOW))
        await fetch(client, "t", 0)
        assert len(caplog.messages) == 1
        caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")
        async with client_of(server) as another:
            for _ in range(2):
                await fetch(another, "t", 0)
        assert [" is Allowed operation = Read " in message for message in caplog.messages[1:]] == [
            True
        ] * 2


class Curfew:
    """Allows what the ACLs allow, except one topic."""

    keeps_decisions = False

    def __init__(self, config: Any, standard: Any) -> None:
        self._forbidden = config.str("super.users").removeprefix("User:")
        self._standard = standard

    def authorize(self, client: Any, action: Any) -> bool:
        return action.resource_name != self._forbidden and self._standard.authorize(client, action)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> str:
    module = ModuleType("an_authorizer")
    module.Curfew = Curfew  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "an_authorizer", module)
    return "an_authorizer:Curfew"


async def test_custom_authorizer_decides_and_may_ask_the_standard_one(tmp_path, own):
    settings = SETTINGS | {"authorizer.class.name": own, "super.users": "User:closed"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        for name in ("t", "closed"):
            await create_topic(client, name)
        assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == 0
        await add(client, rule(Operation.WRITE))
        assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == DENIED


async def test_authorizer_without_decision_cache_is_asked_for_each_produce(
    tmp_path, own, monkeypatch
):
    settings = SETTINGS | {"authorizer.class.name": own}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        for _ in range(4):
            assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == 0
        monkeypatch.setattr(Curfew, "authorize", lambda *_: False)
        assert (await produce(client, "t", batch(b"a"), acks=1)).error_code == DENIED


@pytest.mark.parametrize("name", ["an_authorizer:Missing", "no.such.module:Class"])
async def test_authorizer_that_cannot_be_loaded_stops_the_start(tmp_path, own, name):
    del own
    with pytest.raises(StartError, match=name):
        async with running(tmp_path, settings={"authorizer.class.name": name}):
            pass


async def test_joining_broker_with_a_bad_authorizer_releases_its_resources(tmp_path):
    (port,) = free_ports(1)
    common = {
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
    }
    first = common | {"listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"}
    member = common | {"process.roles": "broker", "node.id": "2"}
    wrong = {"authorizer.class.name": "no.such.module:Class"}
    async with running(tmp_path / "1", settings=first | {"process.roles": "broker,controller"}):
        tasks_before = asyncio.all_tasks()
        with pytest.raises(StartError, match=r"no\.such\.module"):
            async with running(tmp_path / "2", settings=member | wrong):
                pass
        remaining = {task.get_name() for task in asyncio.all_tasks() - tasks_before}
        assert not remaining & {"metadata fetcher", "maintenance", "compactor"}, remaining
        assert (tmp_path / "2" / ".kafka_cleanshutdown").exists()
        LogDirectory.open(str(tmp_path / "2"), Files(), node_id=2).close()  # the lock is free


@pytest.mark.parametrize(
    "settings",
    [
        {"authorizer.class.name": "com.example.Ranger"},
        {"authorizer.class.name": STANDARD, "super.users": "admin"},
    ],
)
async def test_unsupported_authorizer_settings_are_refused_by_name(tmp_path, settings):
    with pytest.raises((ConfigError, StartError), match=r"com\.example\.Ranger|super\.users"):
        async with running(tmp_path, settings=settings):
            pass


class Counting:
    """Decides like the standard authorizer, and counts its decisions."""

    def __init__(self, standard: StandardAuthorizer) -> None:
        self._standard = standard
        self.asked = 0

    def authorize(self, client: Client, action: Action) -> bool:
        self.asked += 1
        return self._standard.authorize(client, action)


def test_decision_is_cached_until_the_acls_change():
    standard = StandardAuthorizer.configured(Config({"authorizer.class.name": STANDARD}))
    rules = [rule(Operation.WRITE, permission=ALLOW, name=f"n{n}") for n in range(5_000)]
    rules += [rule(Operation.WRITE, permission=ALLOW, principal=f"User:{n}") for n in range(5_000)]
    entries = [
        entry_of(SimpleNamespace(**fields, pattern_type=fields["resource_pattern_type"]))
        for fields in rules
    ]
    standard.load({n.to_bytes(16): entry for n, entry in enumerate(entries)})
    counting = Counting(standard)
    authorization = Authorization(counting, standard)
    access = authorization.access_for(Principal("User", "17"), "127.0.0.1", ApiKey.PRODUCE)
    for _ in range(3):
        assert access.may(WRITE_TOPIC, "t")
    assert counting.asked == 1
    standard.apply({(5_017).to_bytes(16): AclChange(entries[5_017], None)})
    authorization.changed()
    assert not access.may(WRITE_TOPIC, "t")
    assert access.may(WRITE_TOPIC, "n7")


def test_permission_on_some_topic_is_cached_until_the_acls_change() -> None:
    principals: list[str] = []

    class Counted:
        def authorize(self, client: Client, action: Action) -> bool:
            raise AssertionError((client, action))

        def allows_some(self, client: Client, _operation: int, _resource_type: int) -> bool:
            principals.append(client.principal)
            return client.principal == "User:alice"

    standard = StandardAuthorizer.configured(Config({"authorizer.class.name": STANDARD}))
    authorization = Authorization(Counted(), standard)
    for user, may in (("alice", True), ("nobody", False)):
        principal = Principal("User", user)
        access = authorization.access_for(principal, "1.2.3.4", ApiKey.INIT_PRODUCER_ID)
        for _ in range(3):
            assert access.may_some(WRITE_TOPIC) is may
        authorization.changed()
        assert access.may_some(WRITE_TOPIC) is may
    assert principals == ["User:alice"] * 2 + ["User:nobody"] * 2


def test_decision_cache_memory_is_bounded_with_long_names():
    standard = StandardAuthorizer.configured(Config({"authorizer.class.name": STANDARD}))
    entry = rule(Operation.WRITE, permission=ALLOW, name="*")
    made = entry_of(SimpleNamespace(**entry, pattern_type=entry["resource_pattern_type"]))
    standard.load({b"": made})
    authorization = Authorization(standard, standard)
    access = authorization.access_for(Principal("User", "17"), "127.0.0.1", ApiKey.PRODUCE)
    tracemalloc.start()
    for n in range(400):
        assert access.may(WRITE_TOPIC, f"{n:032000}")
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1 << 20


def test_decision_cache_of_a_client_has_one_bound():
    standard = StandardAuthorizer.configured(Config({"authorizer.class.name": STANDARD}))
    entry = rule(ALL_OPERATIONS, permission=ALLOW, name="*")
    made = entry_of(SimpleNamespace(**entry, pattern_type=entry["resource_pattern_type"]))
    standard.load({b"": made})
    counting = Counting(standard)
    authorization = Authorization(counting, standard)
    access = authorization.access_for(Principal("User", "17"), "127.0.0.1", ApiKey.PRODUCE)
    permissions = [
        Permission(operation, Resource.TOPIC)
        for operation in (Operation.READ, Operation.WRITE, Operation.DELETE)
    ]
    names = [f"t{n}" for n in range(500)]
    for need in permissions:
        assert all(access.may(need, name) for name in names)
    assert all(access.may(WRITE_TOPIC, name) for name in names)
    assert counting.asked == 1_500, "as many are kept"
    assert all(access.may(DESCRIBE_TOPIC, f"t{n}") for n in range(501))
    assert all(access.may(WRITE_TOPIC, name) for name in names)
    assert counting.asked == 2_501, "and forgotten together when there is one more than may be"


def test_every_api_with_required_permissions_has_a_rule():
    from wirebroker.api.registry import REGISTRY

    for handler in REGISTRY.handlers():
        if handler.permissions and not handler.is_forwarded:
            assert handler.key in BROKER_RULES.keys() | CHECKED_BY_HANDLER, handler.key
