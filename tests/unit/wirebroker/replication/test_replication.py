"""Followers and leaders over an in-memory network: kills, divergence, ISRs, follower reads."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.batches import values_in
from tests.support.replicas.broker_cluster import TOPIC_ID, Cluster, Member, stored
from tests.support.tools.waiting import until
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_response, encode_response
from wirebroker.config.table.replication import RACK_AWARE
from wirebroker.quotas.replication_quotas import ReplicationQuota
from wirebroker.replication.followed_partition import FollowedPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.replicas.memory_peers import Asked
    from wirebroker.replica.partition import Partition


def are_equal(first: Partition, followers: Sequence[Partition]) -> bool:
    return all(
        follower.log.log_end_offset == first.log.log_end_offset
        and follower.log.high_watermark == first.log.high_watermark == first.log.log_end_offset
        for follower in followers
    )


async def until_equal(cluster: Cluster, *node_ids: int, index: int = 0) -> None:
    first, *followers = [cluster[node_id].partition(index=index) for node_id in node_ids]
    await until(lambda: are_equal(first, followers))
    for follower in followers:
        assert stored(follower) == stored(first)
        assert follower.log.leader_epochs.entries == first.log.leader_epochs.entries
        follower.check()
        follower.log.check()


def isr_of(leader: Member) -> tuple[int, ...]:
    leading = leader.partition().leading
    assert leading is not None
    return leading.isr


async def held(cluster: Cluster, *node_ids: int) -> None:

    def has(member: Member) -> bool:
        return bool(member.replicas.find("t", b"", by_id=False)[0])

    await until(lambda: all(has(cluster[node_id]) for node_id in node_ids))


async def fetch(member: Member, offset: int, version: int = 12, **fields: Any) -> Any:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    for name in ("current_leader_epoch", "last_fetched_epoch", "log_start_offset"):
        if name in fields:
            partition[name] = fields.pop(name)
    body = {"topics": [{"topic": "t", "topic_id": TOPIC_ID, "partitions": [partition]}], **fields}
    answer = await member.ask(ApiKey.FETCH, version, body)
    return answer.responses[0].partitions[0]


async def test_followers_copy_the_leaders_log_byte_for_byte(tmp_path):
    # Long enough for a busy machine: no replica leaves the ISR.
    async with Cluster(tmp_path, settings={"replica.lag.time.max.ms": "30000"}) as cluster:
        cluster.create_topic((1, 2, 3), (2, 3, 1))
        await held(cluster, 1, 2, 3)
        for number in range(20):
            assert await cluster[1].produce(b"%d" % number) == number
            assert await cluster[2].produce(b"%d" % number, index=1) == number
        await until_equal(cluster, 1, 2, 3)
        await until_equal(cluster, 2, 1, 3, index=1)
        assert cluster.decided == [], "no replica has left the ISR"


async def test_acks_all_waits_for_followers_and_needs_min_insync_replicas(tmp_path):
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic((1, 2, 3))
        cluster.set_config("min.insync.replicas", "2")
        await held(cluster, 1, 2, 3)
        await cluster[1].produce(b"a")
        await cluster.kill(2)
        await cluster[1].produce(b"b")
        await cluster.kill(3)
        await until(lambda: isr_of(cluster[1]) == (1,))
        with pytest.raises(KafkaError) as caught:
            await cluster[1].produce(b"c")
        assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        await cluster.start(2)
        await until(lambda: isr_of(cluster[1]) == (1, 2))
        assert await cluster[1].produce(b"d") == 2
        await until_equal(cluster, 1, 2)


async def test_lagging_follower_leaves_the_isr_and_returns_when_caught_up(tmp_path):
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic((1, 2, 3))
        await held(cluster, 1, 2, 3)
        await cluster[1].produce(b"a")
        await cluster.kill(3, is_noticed=False)
        waiting = asyncio.create_task(cluster[1].produce(b"b"))
        await until(lambda: cluster.state().isr == (1, 2))
        assert await waiting == 1
        assert cluster.decided == [(0, [1, 2])]
        cluster.fence(3)
        await cluster.start(3)
        await until(lambda: cluster.state().isr == (1, 2, 3))
        await until_equal(cluster, 1, 2, 3)


async def test_restarted_leader_truncates_unreplicated_records(tmp_path):
    async with Cluster(tmp_path, settings={"replica.lag.time.max.ms": "60000"}) as cluster:
        cluster.create_topic((1, 2, 3))
        await held(cluster, 1, 2, 3)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2, 3)
        for member in (cluster[2], cluster[3]):
            await member.replication.stop()
        with pytest.raises(KafkaError) as caught:
            await cluster[1].produce(b"lost", timeout_ms=20)
        assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
        await cluster.kill(1)
        for node_id in (2, 3):
            await cluster.kill(node_id)
        cluster.elect(2, isr=[2])
        await cluster.start(2)
        await cluster.start(3)
        await until(lambda: cluster[2].partition().is_leader)
        await cluster[2].produce(b"b")
        await cluster[2].produce(b"c")
        member = await cluster.start(1)
        assert values_in(stored(member.partition())) == [b"a", b"lost"]
        await until_equal(cluster, 2, 3, 1)
        assert values_in(stored(member.partition())) == [b"a", b"b", b"c"]
        await until(lambda: set(cluster.state().isr) == {1, 2, 3})


async def test_follower_starts_at_the_leaders_log_start(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        for number in range(6):
            await cluster[1].produce(b"%d" % number)
        await until_equal(cluster, 1, 2)
        await cluster.kill(2)
        for number in range(6, 10):
            await cluster[1].produce(b"%d" % number)
        leader = cluster[1].partition()
        leader.log.increment_log_start_offset(8)
        await cluster.start(2)
        await until_equal(cluster, 1, 2)
        follower = cluster[2].partition()
        assert follower.log.log_start_offset == 8
        assert values_in(stored(follower)) == [b"8", b"9"]
        leader.log.increment_log_start_offset(9)
        await cluster[1].produce(b"10")
        await until(lambda: follower.log.log_start_offset == 9)


async def test_follower_ahead_of_an_unclean_leader_is_truncated(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2)
        await cluster.kill(2)
        await cluster[1].produce(b"b")
        await cluster.kill(1)
        cluster.elect(2, isr=[2])  # it lacks committed records
        await cluster.start(2)
        await cluster.start(1)
        await cluster[2].produce(b"c")
        await until_equal(cluster, 2, 1)
        assert values_in(stored(cluster[1].partition())) == [b"a", b"c"]


async def test_follower_with_an_epoch_unknown_to_the_leader_retries_with_pauses(tmp_path, caplog):
    """OFFSET_OUT_OF_RANGE within the leader's bounds: immediate retries would never end."""
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2)
        cluster[1].partition().log.leader_epochs.clear()

        def refusals() -> int:
            return sum("OFFSET_OUT_OF_RANGE" in record.message for record in caplog.records)

        await until(lambda: refusals() >= 2)
        times = [
            record.created for record in caplog.records if "OFFSET_OUT_OF_RANGE" in record.message
        ]
        assert times[1] - times[0] >= 0.01
        cluster.elect(1)  # an epoch that it knows
        await until(lambda: cluster[1].partition().leader_epoch == 1)
        await cluster[1].produce(b"b")
        follower = cluster[2].partition()
        await until(lambda: values_in(stored(follower)) == [b"a", b"b"])


async def test_fetch_errors_for_a_java_follower_are_in_kafkas_order(tmp_path):
    """The order of checks: epoch, leader, replica, divergence, then the range of offsets."""
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        for _ in range(3):
            await cluster[1].produce(b"a")
        leader = cluster[1]

        async def ask(offset: int, *, replica: int = 2, **fields: int) -> Any:
            state = {"replica_id": replica, "replica_epoch": -1}
            return await fetch(leader, offset, 18, replica_state=state, **fields)

        for epoch, code in ((1, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)):
            assert (await ask(3, current_leader_epoch=epoch)).error_code == code
        cluster.elect(1)
        await until(lambda: leader.partition().leader_epoch == 1)
        response = await ask(3, current_leader_epoch=0)
        assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (1, 1)
        for fields, code in (
            ({"current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
            ({}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ):
            assert (await ask(0, replica=9, **fields)).error_code == code
        response = await ask(99, last_fetched_epoch=0)
        assert response.error_code == ErrorCode.NONE
        assert (response.diverging_epoch.epoch, response.diverging_epoch.end_offset) == (0, 3)
        assert (await ask(99)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        other = await fetch(cluster[2], 0, 18, replica_state={"replica_id": 1, "replica_epoch": 1})
        assert other.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_consumers_read_from_followers_up_to_their_high_watermark(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2)
        fetched = await fetch(cluster[2], 0)
        assert values_in(fetched.records) == [b"a"]
        assert (await fetch(cluster[2], 0, 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        waiting = asyncio.create_task(fetch(cluster[2], 1, min_bytes=1, max_wait_ms=20_000))
        await until(lambda: cluster[2].partition().watcher_count)
        await cluster[1].produce(b"b")
        fetched = await waiting
        assert values_in(fetched.records) == [b"b"]


async def test_debugging_replica_id_gets_the_log_end_of_each_replica(tmp_path):
    """Replica id -2 (ListOffsetsRequest.DEBUGGING_REPLICA_ID); consumers are sent to the leader."""
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        assert await cluster[1].produce(b"a") == 0
        await until_equal(cluster, 1, 2)

        async def end_of(node_id: int, replica_id: int) -> tuple[int, int]:
            partition = {"partition_index": 0, "current_leader_epoch": 0, "timestamp": -1}
            topics = [{"name": "t", "partitions": [partition]}]
            request = {"replica_id": replica_id, "isolation_level": 0, "topics": topics}
            answer = await cluster[node_id].ask(ApiKey.LIST_OFFSETS, 7, request)
            (result,) = answer.topics[0].partitions
            return result.error_code, result.offset

        assert await end_of(1, -1) == await end_of(1, -2) == (0, 1)
        assert await end_of(2, -2) == (0, 1)
        assert await end_of(2, -1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_leader_returns_the_preferred_replica_of_the_clients_rack(tmp_path):
    settings = {"replica.selector.class": RACK_AWARE}
    async with Cluster(tmp_path, settings=settings) as cluster:
        cluster.create_topic((1, 2, 3))
        await held(cluster, 1, 2, 3)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2, 3)
        for rack, named, values in (
            ("rack-2", 2, []),
            ("rack-3", 3, []),
            ("rack-1", -1, [b"a"]),
            ("rack-9", -1, [b"a"]),
            ("", -1, [b"a"]),
        ):
            fetched = await fetch(cluster[1], 0, rack_id=rack)
            assert (fetched.preferred_read_replica, values_in(fetched.records)) == (named, values)
        await cluster.kill(3, is_noticed=False)
        await cluster[1].produce(b"b")  # which 3 lacks
        await until(lambda: isr_of(cluster[1]) == (1, 2))
        assert (await fetch(cluster[1], 0, rack_id="rack-3")).preferred_read_replica == -1
        fetched = await fetch(cluster[2], 0, rack_id="rack-2")
        assert values_in(fetched.records) == [b"a"]


async def test_replica_with_an_append_in_progress_does_not_delay_others(tmp_path, caplog):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2), (1, 2))
        await held(cluster, 1, 2)
        async with cluster[2].partition().append_lock:
            waiting = asyncio.create_task(cluster[1].produce(b"a"))
            await until(lambda: cluster[1].partition().log.log_end_offset == 1)
            assert await cluster[1].produce(b"b", index=1) == 0
            await until_equal(cluster, 1, 2, index=1)
        assert await waiting == 0
        await until_equal(cluster, 1, 2)
        assert "cannot process a response" not in caplog.text


async def delete_records(member: Member, offset: int, timeout_ms: int) -> tuple[int, int]:
    partition = {"partition_index": 0, "offset": offset}
    body = {"topics": [{"name": "t", "partitions": [partition]}], "timeout_ms": timeout_ms}
    answer = await member.ask(ApiKey.DELETE_RECORDS, 2, body)
    (result,) = answer.topics[0].partitions
    return result.error_code, result.low_watermark


async def test_delete_records_is_answered_once_all_followers_deleted(tmp_path):
    importlib.import_module("wirebroker.api.data.delete_records")
    async with Cluster(tmp_path) as cluster:
        cluster.create_topic((1, 2, 3))
        await held(cluster, 1, 2, 3)
        for value in (b"a", b"b", b"c"):
            await cluster[1].produce(value)
        await until_equal(cluster, 1, 2, 3)
        assert await delete_records(cluster[1], 2, 10_000) == (0, 2)
        for node_id in (1, 2, 3):
            assert cluster[node_id].partition().log.log_start_offset == 2
        await cluster[3].replication.stop()
        error = int(ErrorCode.REQUEST_TIMED_OUT)
        assert await delete_records(cluster[1], 3, 50) == (error, 2)
        await cluster.kill(3)
        await until(lambda: not cluster[1].heard.brokers[3].is_active)
        assert await delete_records(cluster[1], 3, 10_000) == (0, 3)
        waiting = asyncio.create_task(delete_records(cluster[2], 3, 10_000))
        assert await waiting == (int(ErrorCode.NOT_LEADER_OR_FOLLOWER), -1)


async def test_error_of_a_whole_fetch_response_is_retried_with_backoff(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "wirebroker.replication.replica_fetcher")
    pauses: list[float] = []

    async def note(delay_s: float) -> None:
        pauses.append(delay_s)
        await pause(delay_s)

    monkeypatch.setattr("wirebroker.replication.replica_fetcher.pause", note)
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        serve = cluster[1].peer.answers[ApiKey.FETCH]
        errors = [ErrorCode.UNKNOWN_SERVER_ERROR] * 3

        def refuse(request: Asked) -> None:
            if errors:
                body = {"error_code": int(errors.pop()), "responses": [], "session_id": 0}
                request.answer_bytes(encode_response(request.key, request.version, body))
            else:
                serve(request)

        cluster[1].peer.answers[ApiKey.FETCH] = refuse
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        await cluster[1].produce(b"a")
        await until_equal(cluster, 1, 2)
    assert not errors
    assert pauses[:3] == [0.01, 0.02, 0.04]
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("cannot fetch from broker 1, retrying: UNKNOWN_SERVER_ERROR") == 1
    assert messages.count("fetching from broker 1 again") == 1


async def test_high_watermark_is_sent_again_after_an_epoch_change(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        leader, follower = cluster[1], cluster[2]
        serve = leader.peer.answers[ApiKey.FETCH]
        withheld: list[tuple[Any, bytes]] = []

        def keep(request: Asked) -> None:
            send = request.answer_bytes

            def keep_or_send(body: bytes, **_: Any) -> None:
                answer = decode_response(request.key, request.version, body)
                high_watermarks = [
                    partition.high_watermark
                    for row in answer.responses
                    for partition in row.partitions
                ]
                if 1 in high_watermarks and not withheld:
                    withheld.append((send, body))
                else:
                    send(body)

            request.answer_bytes = keep_or_send  # type: ignore[method-assign]
            serve(request)

        leader.peer.answers[ApiKey.FETCH] = keep
        await leader.produce(b"a")
        # The high watermark is sent only once; then the epoch changes.
        await until(lambda: bool(withheld))
        cluster.elect(1)
        await until(
            lambda: leader.partition().leader_epoch == follower.partition().leader_epoch == 1
        )
        assert follower.partition().log.high_watermark == 0
        [(send, body)] = withheld
        send(body)
        await until(lambda: follower.partition().log.high_watermark == 1)


async def test_partitions_are_spread_over_fetchers_and_removed(tmp_path):
    async with Cluster(
        tmp_path, node_ids=(1, 2), settings={"num.replica.fetchers": "3"}
    ) as cluster:
        cluster.create_topic(*[(1, 2)] * 7)
        await held(cluster, 1, 2)
        fetchers = cluster[2].replication._fetchers
        assert fetchers is not None
        await until(lambda: len(fetchers) == 3)
        assert sorted(map(len, fetchers._fetchers.values())) == [2, 2, 3]
        for index in range(7):
            await cluster[1].produce(b"a", index=index)
            await until_equal(cluster, 1, 2, index=index)
        for index in range(7):
            cluster.elect(2, index=index)
        await until(lambda: len(fetchers) == 0)
        for index in range(7):
            assert await cluster[2].produce(b"b", index=index) == 1


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_returning_replica_is_copied_within_its_quota(tmp_path, side, monkeypatch):
    delays: list[float] = []
    delay_s = ReplicationQuota.delay_s

    def noted_delay_s(quota: ReplicationQuota) -> float:
        delay = delay_s(quota)
        if delay:
            delays.append(delay)
        return delay

    monkeypatch.setattr(ReplicationQuota, "delay_s", noted_delay_s)
    settings = {f"{side}.replication.throttled.rate": "20000", "replica.fetch.max.bytes": "2000"}
    async with Cluster(tmp_path, node_ids=(1, 2), settings=settings) as cluster:
        cluster.create_topic((1, 2), (1, 2))
        cluster.set_config(f"{side}.replication.throttled.replicas", "0:1,0:2")
        await held(cluster, 1, 2)
        await cluster.kill(2)
        for index in (0, 1):
            for _ in range(15):
                await cluster[1].produce(b"x" * 2000, index=index)
        await cluster.start(2)
        await until_equal(cluster, 1, 2, index=1)
        slow = cluster[1].partition(), [cluster[2].partition()]
        assert not are_equal(*slow), "the quota names the other partition alone"
        await until_equal(cluster, 1, 2)
        await until(lambda: set(cluster.state().isr) == {1, 2})
        assert delays
        delays.clear()
        # In-sync replicas stay in sync at any rate.
        for _ in range(15):
            await cluster[1].produce(b"x" * 2000)
        await until_equal(cluster, 1, 2)
        assert not delays


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_throttled_replica_waits_until_its_rate_is_removed(tmp_path, side, monkeypatch):
    refused: list[float] = []
    delay_s = ReplicationQuota.delay_s

    def noted_delay_s(quota: ReplicationQuota) -> float:
        delay = delay_s(quota)
        if delay:
            refused.append(delay)
        return delay

    monkeypatch.setattr(ReplicationQuota, "delay_s", noted_delay_s)
    rate = f"{side}.replication.throttled.rate"
    settings = {
        rate: "1",
        "replication.quota.window.num": "1000",
        "replica.fetch.max.bytes": "2000",
        "replica.fetch.backoff.ms": "1",
        "replica.fetch.wait.max.ms": "1",
    }
    async with Cluster(tmp_path, node_ids=(1, 2), settings=settings) as cluster:
        cluster.create_topic((1, 2))
        cluster.set_config(f"{side}.replication.throttled.replicas", "0:1,0:2")
        await held(cluster, 1, 2)
        await cluster.kill(2)
        for _ in range(9):
            await cluster[1].produce(b"x" * 2000)
        await cluster.start(2)
        await held(cluster, 2)
        await until(lambda: len(refused) > 50)
        # The rate allows one fetch. Its response is lost if the leader's epoch has changed
        # meanwhile.
        assert cluster[2].partition().log.log_end_offset <= 1
        for member in cluster.members.values():
            member.replication.use_config(
                cluster.config.with_dynamic(
                    cluster_wide={rate: "9223372036854775807"}, this_broker={}
                )
            )
        await until_equal(cluster, 1, 2)
        await until(lambda: set(cluster.state().isr) == {1, 2})


async def test_a_throttled_partition_pauses_even_if_the_backoff_is_zero(tmp_path):
    async with Cluster(tmp_path, node_ids=(1, 2)) as cluster:
        cluster.create_topic((1, 2))
        await held(cluster, 1, 2)
        followed = FollowedPartition(cluster[2].partition())
    followed.throttle(now=5.0, pause_s=0.0)
    assert followed.not_before > 5.0
    followed.throttle(now=5.0, pause_s=1.0)
    assert followed.not_before == 6.0
    assert followed.failures == 0
