"""Followers and leaders over an in-memory network: kills, divergence, ISRs, deleted records."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.batches import values_in
from tests.support.replicas.broker_cluster import Cluster, stored
from tests.support.tools.waiting import until
from tests.unit.wirebroker.replication.replication_kit import (
    delete_records,
    held,
    isr_of,
    until_equal,
)
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_response, encode_response

if TYPE_CHECKING:
    from tests.support.replicas.memory_peers import Asked


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
