"""Three controllers that the configuration names as voters (kraft.version 0)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.broker.controller_group import ControllerGroup
from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP, write
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pathlib import Path


async def test_all_controllers_are_registered_and_their_voters_become_dynamic(
    tmp_path: Path,
) -> None:
    async with ControllerGroup(tmp_path, 3, is_static=True) as group:
        leader = await group.leader()
        await group.until(lambda: set(leader.follower.image.controllers) == {1, 2, 3})
        async with asyncio.timeout(PATIENCE_S):
            # Until each voter has told the leader its directory.
            while (error := await group.upgrade()) is not ErrorCode.NONE:
                assert error is ErrorCode.INVALID_UPDATE_VERSION
                await pause(0.05)
        keys = {group.controller(node_id).node.key for node_id in (1, 2, 3)}
        for node_id in (1, 2, 3):
            node = group.controller(node_id).node
            async with asyncio.timeout(PATIENCE_S):
                while node.kraft_version != 1:
                    await pause(0.05)
            assert set(node.voters.keys) == keys


async def test_without_a_majority_nothing_is_decided_until_there_is_one(
    tmp_path: Path,
) -> None:
    async with ControllerGroup(tmp_path, 3, is_static=True) as group:
        leader = await group.leader()
        await leader.submit(write(NO_OP))
        own_id = leader.rules.node_id
        others = [node_id for node_id in (1, 2, 3) if node_id != own_id]
        epoch = leader.node.leadership.epoch
        # As after kills: the leader learns nothing of their end.
        for node_id in others:
            await group.kill(node_id)
        waiting = asyncio.ensure_future(leader.submit(write(NO_OP)))
        with pytest.raises(KafkaError) as raised:
            await waiting
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        await group.until(lambda: not leader.is_active)
        with pytest.raises(KafkaError) as raised:
            await leader.submit(write(NO_OP))
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        assert not leader.node.has_working_leader
        await group.start(others[0])
        successor = await group.leader()
        assert successor.node.leadership.epoch > epoch
        await successor.submit(write(NO_OP))
