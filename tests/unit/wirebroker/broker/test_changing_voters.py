"""A single controller becomes a quorum: kraft.version is raised, voters are added and removed."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from tests.unit.wirebroker.broker.controller_group import ControllerGroup
from tests.unit.wirebroker.quorum.log.metadata_kit import write
from wirebroker.broker import late_modules
from wirebroker.broker.controller_server import ControllerServer
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.quorum.raft import leader_watch
from wirebroker.quorum.raft.raft_node import RaftNode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _topic(name: str) -> MetadataRecord:
    return metadata_record(RecordType.TOPIC, name=name, topic_id=name.encode()[:16].ljust(16))


async def test_a_single_controller_grows_and_is_replaced(tmp_path: Path) -> None:
    async with ControllerGroup(tmp_path, 3) as group:
        first = group.controller(1)
        await first.submit(write(_topic("kept")))
        for node_id in (2, 3):
            await group.start(node_id)
        assert await group.upgrade() is ErrorCode.NONE  # it has this level
        assert first.follower.kraft_version == 1
        for node_id in (2, 3):
            assert await group.add(node_id) is ErrorCode.NONE
        assert await group.add(3) is ErrorCode.DUPLICATE_VOTER
        assert first.node.voters.ids == {1, 2, 3}
        await first.submit(write(_topic("with three voters")))
        assert await group.remove(1, first.node.key.directory_id) is ErrorCode.NONE
        await group.until(lambda: group.controller(2).node.voters.ids == {2, 3})
        await group.stop(1)
        successor = await group.leader()
        await successor.submit(write(_topic("without the first one")))
        expected = {"kept", "with three voters", "without the first one"}
        followers = [group.controller(node_id).follower for node_id in (2, 3)]
        await group.until(
            lambda: all(set(follower.image.topics) == expected for follower in followers)
        )
        # The voters are in the log.
        await group.stop(2)
        await group.start(2)
        assert group.controller(2).node.voters.ids == {2, 3}
        await group.leader()


async def test_controllers_join_by_themselves_also_after_their_disk_was_replaced(
    tmp_path: Path,
) -> None:
    async with ControllerGroup(tmp_path, 3, controller_quorum_auto_join_enable="true") as group:
        assert await group.upgrade() is ErrorCode.NONE
        for node_id in (2, 3):
            await group.start(node_id)
        leader = await group.leader()
        await group.until(lambda: leader.node.voters.ids == {1, 2, 3})
        former = group.controller(3).node.key
        await group.stop(3)
        shutil.rmtree(group.folder(3))
        await group.start(3)
        present = group.controller(3).node.key
        assert present.directory_id != former.directory_id
        leader = await group.leader()
        await group.until(lambda: present in leader.node.voters.keys)
        assert leader.node.voters.ids == {1, 2, 3}
        await leader.submit(write(_topic("committed")))


async def test_a_single_broker_grows_and_survives_the_loss_of_its_first_node(
    tmp_path: Path,
) -> None:
    async with ControllerGroup(
        tmp_path, 3, is_combined=True, broker_session_timeout_ms="3000"
    ) as group:
        first = group.controller(1)
        assert await group.upgrade() is ErrorCode.NONE
        for node_id in (2, 3):
            await group.start(node_id)
            assert await group.add(node_id) is ErrorCode.NONE
        assert all(first.follower.image.brokers[node_id].is_active for node_id in (1, 2, 3))
        await group.stop(1)
        leader = await group.leader()
        await leader.submit(write(_topic("after the loss")))
        brokers = leader.follower.image.brokers
        assert [brokers[node_id].is_active for node_id in (1, 2, 3)] == [False, True, True]
        await group.start(1)
        assert "after the loss" in group.controller(1).follower.image.topics
        await group.until(lambda: leader.follower.image.brokers[1].is_active)


async def test_controller_that_has_grown_logs_that_its_quorum_has_no_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leader_watch, "_INTERVAL_S", 0.05)
    monkeypatch.setattr(leader_watch, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(late_modules, "_DELAY_S", 0.0)
    async with ControllerGroup(tmp_path, 2) as group:
        first = group.controller(1)
        await group.start(2)
        assert await group.add(2) is ErrorCode.NONE
        assert first.node.voters.ids == {1, 2}
        await group.kill(2)
        await group.until(lambda: any(_is_leaderless(line) for line in caplog.messages))
        [line] = [line for line in caplog.messages if _is_leaderless(line)]
        assert "(this node, " in line


def _is_leaderless(line: str) -> bool:
    return "the metadata quorum has had no leader" in line


async def test_controller_that_stops_joins_no_other_voters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of voters may arrive until the listeners are closed."""
    async with ControllerGroup(tmp_path, 1) as group:
        controller = await group.leader()
        (server,) = group.servers.values()
        assert isinstance(server, ControllerServer)
        await server.node.end_duties()
        monkeypatch.setattr(RaftNode, "is_only_voter", property(lambda _: False))
        assert not controller.node.is_only_voter
        server.node._voters_changed()
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "join the voters"]
        assert server.node.voters == ""
