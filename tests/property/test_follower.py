"""Random divergence of a follower from its leader: in the end both logs have the same batches.

Two replicas lead in turns. The follower fetches the end offset of its last epoch
(OffsetForLeaderEpoch), truncates by KIP-101 and KIP-279, and fetches the rest. Segment sizes
differ, so only batches, aborted transactions, producers and epochs are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.harness.budget import SharedBudget
from wirebroker.codecs.records.batch import build_batch
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.log.markers import append_end_marker
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    import pytest

NOW_MS = 1_700_000_000_000


def open_log(directory: Path, random: Random) -> Log:
    directory.mkdir()
    settings = TopicSettings(
        segment_bytes=random.choice([300, 1000, 5000]), index_interval_bytes=random.choice([0, 200])
    )
    log = Log(
        str(directory), Files(), topic="t", partition=0, topic_id=bytes(16), settings=settings
    )
    load_log(log, recovery_point=0, clean=True, now_ms=NOW_MS)
    return log


def lead(log: Log, epoch: int, random: Random) -> None:
    """Append some batches as leader of an epoch, a third of them in transactions."""
    for _ in range(random.randrange(0, 8)):
        producer_id = random.choice([-1, -1, 5, 6])
        if producer_id < 0:
            batch = build_batch([(None, random.randbytes(30), ())], timestamp_ms=NOW_MS)
            log.append_as_leader(memoryview(batch), leader_epoch=epoch, now_ms=NOW_MS)
        elif random.random() < 0.5:
            append_end_marker(
                log,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                is_commit=random.random() < 0.3,
                transaction_version=0,
                leader_epoch=epoch,
                now_ms=NOW_MS,
            )
        else:
            append_in_transaction(log, producer_id, epoch)


def append_in_transaction(log: Log, producer_id: int, epoch: int) -> None:
    state = log.producer_state
    entry = state.producers.get(producer_id)
    sequence = entry.last_sequence + 1 if entry else 0
    guard = state.begin_verification(
        producer_id,
        sequence=sequence,
        producer_epoch=0,
        supports_epoch_bump=False,
        now_ms=NOW_MS,
    )
    batch = build_batch(
        [(None, b"v", ())],
        timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    log.append_as_leader(memoryview(batch), leader_epoch=epoch, now_ms=NOW_MS, guard=guard)


def follow(follower: Log, leader: Log, epoch: int, random: Random) -> None:
    """Truncate to where the logs agree, then fetch some or all of the rest."""
    while True:
        follower_epoch = follower.leader_epochs.latest_epoch
        if follower_epoch < 0:
            follower.truncate_to(0, now_ms=NOW_MS)
            break
        leader_epoch, end_offset = leader.end_offset_for_epoch(follower_epoch)
        if leader_epoch < 0:
            follower.truncate_to(0, now_ms=NOW_MS)
            break
        if leader_epoch == follower_epoch:
            follower.truncate_to(min(end_offset, follower.log_end_offset), now_ms=NOW_MS)
            break
        _, own_end = follower.end_offset_for_epoch(leader_epoch)
        before = follower.log_end_offset
        follower.truncate_to(min(end_offset, max(own_end, 0)), now_ms=NOW_MS)
        assert (
            follower.log_end_offset < before or follower.leader_epochs.latest_epoch <= leader_epoch
        )
    fetch(follower, leader, epoch, random)


def fetch(follower: Log, leader: Log, epoch: int, random: Random) -> None:
    stop_at = random.choice([leader.log_end_offset, random.randrange(leader.log_end_offset + 1)])
    while follower.log_end_offset < stop_at:
        log_slice = leader.read(
            follower.log_end_offset,
            random.choice([1, 100, 400]),
            up_to_offset=leader.log_end_offset,
            min_one=True,
        ).slice
        assert log_slice is not None
        high_watermark = follower.high_watermark
        assert follower.append_as_follower(log_slice.read(), now_ms=NOW_MS, leader_epoch=epoch)
        assert follower.high_watermark == high_watermark, "only its owner moves it"


def everything(log: Log) -> bytes:
    return b"".join(
        segment.log.read_at(0, segment.size) for segment in log.segments if segment.size
    )


def check_same(first: Log, second: Log) -> None:
    assert everything(first) == everything(second)
    assert first.log_end_offset == second.log_end_offset
    assert first.leader_epochs.entries == second.leader_epochs.entries
    assert first.producer_state.as_rows() == second.producer_state.as_rows()
    assert first.producer_state.transactions.ongoing == second.producer_state.transactions.ongoing
    aborted = [
        [entry for segment in log.segments for entry in segment.transaction_index]
        for log in (first, second)
    ]
    assert aborted[0] == aborted[1]
    for log in (first, second):
        log.set_high_watermark(log.log_end_offset)
        log.check()
    assert first.last_stable_offset == second.last_stable_offset


def test_replicas_that_lead_in_turns_end_byte_identical(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(request.config, seconds=4)
    rounds = 0
    for number in budget.rounds():
        random = budget.random
        directory = tmp_path / str(number)
        directory.mkdir()
        leader = open_log(directory / "a", random)
        follower = open_log(directory / "b", random)
        try:
            epoch = 0
            for _ in range(random.randrange(1, 8)):
                lead(leader, epoch, random)
                if random.random() < 0.7:
                    follow(follower, leader, epoch, random)
                epoch += random.randrange(1, 3)
                if random.random() < 0.5:
                    leader, follower = follower, leader
            lead(leader, epoch, random)
            follow(follower, leader, epoch, random)
            fetch_rest(follower, leader, epoch)
            check_same(leader, follower)
        except Exception as error:  # raised again with the seed
            error.add_note(f"seed {budget.seed}, round {number}")
            raise
        finally:
            leader.close(clean=False)
            follower.close(clean=False)
        rounds += 1
    with capsys.disabled():
        print(f"\n  replicas: seed {budget.seed}, {rounds} stories")  # noqa: T201


def fetch_rest(follower: Log, leader: Log, epoch: int) -> None:
    while follower.log_end_offset < leader.log_end_offset:
        log_slice = leader.read(
            follower.log_end_offset, 1 << 20, up_to_offset=leader.log_end_offset
        ).slice
        assert log_slice is not None
        follower.append_as_follower(log_slice.read(), now_ms=NOW_MS, leader_epoch=epoch)
