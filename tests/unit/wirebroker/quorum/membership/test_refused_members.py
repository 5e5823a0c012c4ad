"""Refused starts of a member: which ids are refused, and which files remain."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import config_of
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.disks.test_several_directories import cluster
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import StartError
from wirebroker.disks.log_dir_locks import why_not_started
from wirebroker.net.client.errors import RequestTimedOutError
from wirebroker.quorum.membership.member_lifecycle import NodeIdTakenError
from wirebroker.quorum.membership.voters import check_is_no_voter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def member(
    first: Server,
    node_id: int,
    *directories: Path,
    has_chosen_id: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Server:
    config = config_of(
        *directories,
        settings={
            "node.id": str(node_id),
            "process.roles": "broker",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{first.controllers[0].port}",
            **(settings or {}),
        },
    )
    return Server(config, has_chosen_id=has_chosen_id)


def left(*directories: Path) -> set[str]:
    return {entry.name for path in directories for entry in path.iterdir()} - {".lock"}


def identities(folder: Path) -> dict[str, str]:
    """Return the owners of the directories in a folder."""
    return {path.parent.name: path.read_text() for path in folder.glob("*/meta.properties")}


async def test_broker_with_a_controllers_id_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "new"
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        # A node with an automatic id tries another one.
        with pytest.raises(
            NodeIdTakenError, match="1 is the node id of one of the cluster's controllers"
        ):
            await member(servers[1], 1, data).start()
    assert not data.exists()


async def test_failed_start_leaves_new_directories_unclaimed(tmp_path: Path) -> None:
    data = [tmp_path / name for name in ("a", "b", "of metadata")]
    home = {"metadata.log.dir": str(data[2])}
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        with pytest.raises(NodeIdTakenError, match="the cluster has a live broker 2"):
            await member(servers[1], 2, *data[:2], settings=home).start()
        assert left(*data) == set()
        third = member(servers[1], 3, *data[:2], settings=home)
        await third.start()
        await third.stop()
        assert "meta.properties" in left(data[0])
        # By now these ids are taken, and one more is free.
        before = identities(tmp_path)
        with pytest.raises(StartError, match="belongs to node 3, this is node 4"):
            await member(servers[1], 4, *data[:2], tmp_path / "c", settings=home).start()
        assert identities(tmp_path) == before


async def test_interrupted_start_leaves_a_new_directory_unclaimed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        joining = member(servers[1], 2, tmp_path / "new", has_chosen_id=False)
        starting = asyncio.create_task(joining.start())
        with caplog.at_level("INFO"):
            await until(lambda: "broker 2 is still registered" in caplog.text)
        assert left(tmp_path / "new") == {"meta.properties", "__cluster_metadata-0"}
        starting.cancel()
        await asyncio.wait({starting})
        assert left(tmp_path / "new") == set()


class Controllers:
    """Controllers with a scripted DescribeQuorum response."""

    def __init__(self, **answer: Any) -> None:
        self._answer = SimpleNamespace(**{"error_code": 0, "topics": [], **answer})

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        assert key is ApiKey.DESCRIBE_QUORUM
        assert body["topics"][0]["topic_name"] == "__cluster_metadata"
        if not timeout_s:
            raise RequestTimedOutError("the controller", "no answer")
        return self._answer


async def test_voter_check_tolerates_missing_authorization(
    caplog: pytest.LogCaptureFixture,
) -> None:
    denied: Any = Controllers(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    await check_is_no_voter(denied, 7, timeout_s=1)
    assert "CLUSTER_AUTHORIZATION_FAILED" in caplog.text
    with pytest.raises(StartError, match="cannot get the voters from the controllers"):
        await check_is_no_voter(denied, 7, timeout_s=0)


class Electing(Controllers):
    """Controllers whose leader has changed by the second request."""

    def __init__(self, voter: int) -> None:
        super().__init__()
        self.forgotten: list[str] = []
        self._voter = voter

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        answer = await super().request(key, body, timeout_s=timeout_s)
        partition = SimpleNamespace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_voters=[])
        if self.forgotten:
            voters = [SimpleNamespace(replica_id=self._voter)]
            partition = SimpleNamespace(error_code=0, current_voters=voters)
        answer.topics = [SimpleNamespace(partitions=[partition])]
        return answer

    async def find(self, timeout_s: float) -> Any:
        assert timeout_s
        return SimpleNamespace(address="the last leader")

    def forget(self, address: str) -> None:
        self.forgotten.append(address)


async def test_voter_check_follows_a_new_quorum_leader() -> None:
    controllers: Any = Electing(voter=7)
    with pytest.raises(StartError, match="7 is the node id of one of the cluster's controllers"):
        await check_is_no_voter(controllers, 7, timeout_s=PATIENCE_S)
    assert controllers.forgotten == ["the last leader"]
    await check_is_no_voter(controllers, 8, timeout_s=PATIENCE_S)
    controllers.forgotten.clear()
    with pytest.raises(StartError, match=r"no leader responded within 0\.01 s"):
        await check_is_no_voter(controllers, 7, timeout_s=0.01)


def test_controller_refusal_is_not_reported_as_a_directory_error() -> None:
    for error in (OSError("no such disk"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)):
        assert why_not_started(error).what.startswith("the data directory cannot be used: ")
    refused = KafkaError(ErrorCode.INVALID_REGISTRATION, "no listener")
    assert why_not_started(refused).what == (
        "the controller refuses this node: INVALID_REGISTRATION: no listener"
    )
