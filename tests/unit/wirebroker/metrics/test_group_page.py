"""Groups of each kind on the page of metrics, with their members and lags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import ONE_NODE, broker_of, client_of, running
from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.protocol.requests import append, create_topic
from tests.support.protocol.share_client import SHARE_NODE
from tests.support.records.batches import batch
from tests.support.records.clocks import MovedClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state.state import StateBatch, StateWrite
from wirebroker.metrics.share_lag import ShareProgress

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

SETTINGS = {**ONE_NODE, **HTTP, "offsets.topic.num.partitions": "1"}
METRICS = "kafka_server_group_coordinator_metrics_"
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


async def joined(client: RawClient, group: str, topic: str) -> Any:
    """Join a consumer group; return the member."""
    await client.ask(ApiKey.FIND_COORDINATOR, 1, {"key": group, "key_type": 0})
    request = {
        "group_id": group,
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    while True:
        answer = await client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
        if answer.error_code not in NOT_YET:
            assert answer.error_code == 0, answer.error_message
            return answer


async def commit(client: RawClient, group: str, offset: int, member: Any = None) -> None:
    partition = {"partition_index": 0, "committed_offset": offset}
    body: dict[str, Any] = {"group_id": group, "topics": [{"name": "t", "partitions": [partition]}]}
    if member is not None:
        body |= {"member_id": "member", "generation_id_or_member_epoch": member.member_epoch}
    answer = await client.ask(ApiKey.OFFSET_COMMIT, 9, body)
    assert answer.topics[0].partitions[0].error_code == 0


async def test_groups_and_lags_are_given_by_kind(tmp_path: Path) -> None:
    clock = MovedClock()
    async with (
        running(tmp_path, settings=SETTINGS, clock=clock) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t", 1)
        await append(client, "t", batch(b"one", b"two", b"three", timestamp_ms=clock.now_ms()))
        member = await joined(client, "newer", "t")
        await commit(client, "newer", 1, member)
        await commit(client, "classic", 3)
        clock.passed_ms += 30_000
        page = await scrape(server)
        for kind, count in (("classic", 1), ("consumer", 1), ("share", 0), ("streams", 0)):
            assert value(page, f"{METRICS}group_count", protocol=kind) == count
        assert value(page, f"{METRICS}consumer_group_count", state="Stable") == 1
        assert value(page, f"{METRICS}classic_group_count", state="Empty") == 1
        assert value(page, "kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
        assert value(page, "kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1
        assert value(page, "kafka_consumergroup_members", consumergroup="newer") == 1
        assert value(page, "kafka_consumergroup_members", consumergroup="classic") == 0
        assert value(page, "wirebroker_group_lag_records", kind="consumer") == 2
        assert value(page, "wirebroker_group_lag_records", kind="classic") == 0
        seconds = value(page, "wirebroker_group_lag_seconds", kind="consumer")
        assert seconds is not None
        assert 30 <= seconds < 90
        clock.passed_ms += 60_000  # the member's session ends
        assert server.broker is not None
        await server.broker.groups.catch_up()
        page = await scrape(server)
        assert value(page, f"{METRICS}consumer_group_count", state="Empty") == 1
        assert value(page, f"{METRICS}consumer_group_count", state="Stable") is None


async def test_lags_of_share_groups(tmp_path: Path) -> None:
    clock = MovedClock()
    settings = {**SHARE_NODE, **HTTP}
    async with (
        running(tmp_path, settings=settings, clock=clock) as server,
        client_of(server) as client,
    ):
        topic_id = await create_topic(client, "t", 3)
        for text in (b"one", b"two", b"three", b"four"):
            await append(client, "t", batch(text, timestamp_ms=clock.now_ms()))
        persister = broker_of(server).persister
        begun, new, read_all = (topic_id, 0), (topic_id, 1), (topic_id, 2)
        await persister.initialize("g", {begun: (1, 0), new: (1, -1), read_all: (1, 0)})
        accepted = StateBatch(2, 2, 2, 1)
        await persister.write("g", {begun: StateWrite(1, 0, 1, 1, (accepted,))})
        clock.passed_ms += 30_000
        page = await scrape(server)

        def of(name: str, partition: str) -> float | None:
            labels = {"group": "g", "topic": "t", "partition": partition}
            return value(page, f"wirebroker_sharegroup_{name}", **labels)

        # The second record and the fourth.
        assert (of("start_offset", "0"), of("lag", "0")) == (1, 2)
        assert (of("start_offset", "1"), of("lag", "1")) == (-1, -1)
        assert (of("start_offset", "2"), of("lag", "2")) == (0, 0)
        seconds = of("lag_seconds", "0")
        assert seconds is not None
        assert 30 <= seconds < 90
        assert (of("lag_seconds", "1"), of("lag_seconds", "2")) == (None, 0)
        assert value(page, "wirebroker_group_lag_records", kind="share") == 2
        assert value(page, "wirebroker_group_lag_seconds", kind="share") == seconds


@pytest.mark.parametrize(
    ("progress", "end_offset", "lag"),
    [
        (ShareProgress(3, 2), 10, 5),
        (ShareProgress(3, 7), 10, 0),
        # A follower's end may be older than the state.
        (ShareProgress(3, 2), 4, 0),
        (ShareProgress(-1, -1), 10, -1),
        (ShareProgress(3, -1), 10, -1),
        (ShareProgress(3, 2), None, None),
    ],
)
def test_lag_counts_unfinished_records(
    progress: ShareProgress, end_offset: int | None, lag: int | None
) -> None:
    assert progress.lag(end_offset, None, 0).lag == lag
