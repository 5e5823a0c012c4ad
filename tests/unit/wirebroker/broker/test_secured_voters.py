"""Controllers that log in at each other and need ClusterAction to vote."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.security.tls_files import tls_configs
from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.broker.controller_group import ControllerGroup
from tests.unit.wirebroker.quorum.log.metadata_kit import write
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.acls import (
    ALLOW,
    CLUSTER_NAME,
    LITERAL,
    WILDCARD,
    AclEntry,
    Operation,
    Resource,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.config import Config
from wirebroker.config.listeners.listeners import to_controllers
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.image.cluster_image import acl_record
from wirebroker.net.client.active_controller import DeniedByControllersError
from wirebroker.net.client.errors import CannotConnectError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.cluster_lookup import controllers_at
from wirebroker.quorum.raft.raft_channel import RaftChannel
from wirebroker.security.login.outgoing import connection_method
from wirebroker.security.sasl.first_users import first_users

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MODULES: Final = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}
# Only `root` is a super user. SCRAM users are in the metadata, so the first voter begins alone.
_USERS: Final = ("root", "voter", "stranger")
_PASSWORD: Final = "a-secret"


def _common(folder: Path, mechanism: str, protocol: str) -> dict[str, str]:
    tls = tls_configs(folder / "tls") if protocol == "SASL_SSL" else {}
    return {
        **tls,
        "listener.security.protocol.map": f"CONTROLLER:{protocol}",
        "sasl.mechanism.controller.protocol": mechanism,
        "listener.name.controller.sasl.enabled.mechanisms": mechanism,
        "authorizer.class.name": STANDARD,
        "super.users": "User:root",
    }


def _login(mechanism: str, user: str) -> dict[str, str]:
    """Return the settings of a node that logs in as a user."""
    known = "".join(f' user_{name}="{_PASSWORD}"' for name in _USERS)
    jaas = (
        f"org.apache.kafka.common.security.{_MODULES[mechanism]} required"
        f' username="{user}" password="{_PASSWORD}"{known if mechanism == "PLAIN" else ""};'
    )
    return {f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": jaas}


def _may_vote(user: str) -> MetadataRecord:
    entry = AclEntry(
        Resource.CLUSTER,
        CLUSTER_NAME,
        LITERAL,
        f"User:{user}",
        WILDCARD,
        Operation.CLUSTER_ACTION,
        ALLOW,
    )
    return acl_record(bytes([1]) * 16, entry)


def _topic(name: str) -> MetadataRecord:
    return metadata_record(RecordType.TOPIC, name=name, topic_id=name.encode()[:16].ljust(16))


def _scram_users(mechanism: str) -> list[MetadataRecord]:
    if mechanism == "PLAIN":
        return []
    return first_users([f"{mechanism}=[name={name},password={_PASSWORD}]" for name in _USERS])


def _group(
    folder: Path, count: int, settings: Mapping[str, str], mechanism: str
) -> ControllerGroup:
    own = _login(mechanism, "root")
    return ControllerGroup(folder, count, common_settings=settings, first_settings=own)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")],
)
async def test_controllers_with_cluster_action_form_a_quorum(
    tmp_path: Path, protocol: str, mechanism: str
) -> None:
    settings = _common(tmp_path, mechanism, protocol)
    async with _group(tmp_path, 3, settings, mechanism) as group:
        first = group.controller(1)
        await first.submit(write(_may_vote("voter"), *_scram_users(mechanism)))
        for node_id in (2, 3):
            await group.start(node_id, **_login(mechanism, "voter"))
            assert await group.add(node_id) is ErrorCode.NONE
        await first.submit(write(_topic("kept")))
        await group.until(lambda: set(first.follower.image.controllers) == {1, 2, 3})
        # The two others need each other's votes, and have no other right.
        await group.stop(1)
        successor = await group.leader()
        await successor.submit(write(_topic("by two voters")))
        assert set(successor.follower.image.topics) == {"kept", "by two voters"}


async def test_node_without_cluster_action_is_refused_and_logs_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    send = RaftChannel.request

    async def counted(channel: RaftChannel, *arguments: Any) -> Any:
        response = await send(channel, *arguments)
        requests.append(response)
        return response

    settings = _common(tmp_path, "PLAIN", "SASL_SSL")
    async with _group(tmp_path, 2, settings, "PLAIN") as group:
        first = group.controller(1)
        await first.submit(write(_topic("kept")))
        epoch = first.node.leadership.epoch
        monkeypatch.setattr(RaftChannel, "request", counted)
        with caplog.at_level(logging.WARNING, "wirebroker.quorum.raft.raft_channel"):
            stranger = await group.start(2, **_login("PLAIN", "stranger"))
            await group.until(lambda: len(requests) >= 3)
        assert {response.error for response in requests} == {  # type: ignore[attr-defined]
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        }
        assert not stranger.follower.image.topics
        assert first.node.leadership.epoch == epoch
        [line] = [
            record.getMessage()
            for record in caplog.records
            if "CLUSTER_AUTHORIZATION_FAILED" in record.getMessage()
        ]
        assert "refuses the requests of this node" in line


async def test_voter_without_a_leader_does_not_deny_what_acls_in_its_log_allow(
    tmp_path: Path,
) -> None:
    """A restarted voter applies its log when it hears a high watermark."""
    settings = _common(tmp_path, "PLAIN", "SASL_PLAINTEXT")
    async with _group(tmp_path, 2, settings, "PLAIN") as group:
        first = group.controller(1)
        await first.submit(write(_may_vote("voter")))
        await group.start(2, **_login("PLAIN", "root"))
        assert await group.add(2) is ErrorCode.NONE
        await asyncio.gather(group.stop(1), group.stop(2))
        first = await group.start(1, **_login("PLAIN", "root"))
        config = Config({**settings, **_login("PLAIN", "voter")})
        controllers = controllers_at(
            [PeerAddress(endpoint.host, endpoint.port) for endpoint in first.endpoints],
            SystemClock(),
            way=connection_method(to_controllers(config)),
        )
        with pytest.raises(CannotConnectError, match="UNKNOWN_SERVER_ERROR") as failed:
            await controllers.find(PATIENCE_S)
        assert not isinstance(failed.value, DeniedByControllersError)
        await group.start(2, **_login("PLAIN", "root"))
        await group.leader()
        assert (await controllers.find(PATIENCE_S)).address in controllers.addresses
        await controllers.close()
