"""/metrics of processes that are only controllers or only brokers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.broker.controller_group import ControllerGroup
from tests.unit.wirebroker.disks.test_several_directories import cluster
from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP, write
from tests.unit.wirebroker.quorum.membership.test_refused_members import member
from wirebroker.broker.controller_server import ControllerServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http.scrape_pages import Samples

_RAFT = "kafka_server_raftmetrics_"
_ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"


async def test_each_voter_shows_the_state_of_the_quorum(tmp_path: Path) -> None:
    async with ControllerGroup(tmp_path, 3, is_static=True, common_settings=HTTP) as group:
        leader = await group.leader()
        end_offset = await leader.submit(write(NO_OP)) + 1
        leader_id = leader.rules.node_id
        await group.until(
            lambda: all(
                group.controller(node_id).follower.image.offset >= end_offset
                for node_id in (1, 2, 3)
            )
        )
        pages = {node_id: await _page(group, node_id) for node_id in (1, 2, 3)}
        for node_id, page in pages.items():
            is_leader = node_id == leader_id
            state = "leader" if is_leader else "follower"
            assert value(page, f"{_RAFT}current_state", current_state=state) == 1
            assert value(page, f"{_RAFT}current_leader") == leader_id
            assert value(page, f"{_RAFT}current_epoch") == leader.node.leadership.epoch
            assert value(page, f"{_RAFT}number_of_voters") == 3
            assert value(page, f"{_RAFT}number_unknown_voter_connections") == 0
            assert value(page, _ACTIVE) == (1 if is_leader else None)
            rate = "append_records_rate" if is_leader else "fetch_records_rate"
            assert value(page, f"{_RAFT}{rate}")
        assert value(pages[leader_id], f"{_RAFT}election_latency_max") is not None
        assert value(pages[leader_id], f"{_RAFT}commit_latency_avg") is not None
        ends = [value(page, f"{_RAFT}log_end_offset") for page in pages.values()]
        assert all(end is not None and end >= end_offset for end in ends), (ends, end_offset)


async def test_broker_shows_the_state_of_its_observer(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        broker = member(servers[1], 3, tmp_path / "new", settings=HTTP)
        await broker.start()
        page = await scrape(broker)
        assert value(page, f"{_RAFT}current_state", current_state="observer") == 1
        assert value(page, f"{_RAFT}current_leader") == 1
        assert value(page, f"{_RAFT}current_vote") == -1
        assert value(page, f"{_RAFT}number_unknown_voter_connections") == 0
        assert value(page, f"{_RAFT}high_watermark")
        assert value(page, f"{_RAFT}fetch_records_rate")
        await broker.stop()


async def _page(group: ControllerGroup, node_id: int) -> Samples:
    server = group.servers[node_id]
    assert isinstance(server, ControllerServer)
    return await scrape(server)
