from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.protocol.requests import append
from tests.support.protocol.share_client import share_broker
from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.share_configs import OffsetReset
from wirebroker.share import start_offsets
from wirebroker.share.start_offsets import start_offset
from wirebroker.storage.log.search_by_time import DetachedLog
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Steps


class StoppedClock:
    def now_ms(self) -> int:
        return TIMESTAMP_MS + 1_000

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize("takes_long", [False, True])
async def test_groups_begin_where_their_configs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, takes_long: bool
):
    if takes_long:
        _never_at_once(monkeypatch)
    async with share_broker(tmp_path) as share:
        client = await share.client()
        await append(client, "t", batch(b"a", timestamp_ms=TIMESTAMP_MS - 5_000))
        await append(client, "t", batch(b"b", b"c"))
        (partition,) = share.broker.replicas.find("t", b"", by_id=False)[0].values()

        async def begin(reset: OffsetReset, epoch: int = partition.leader_epoch) -> int:
            return await start_offset(partition, reset, leader_epoch=epoch, clock=StoppedClock())

        assert await begin(OffsetReset()) == 3
        assert await begin(OffsetReset(is_latest=False)) == 0
        assert await begin(OffsetReset(is_latest=False, duration_ms=2_000)) == 1
        assert await begin(OffsetReset(is_latest=False, duration_ms=60_000)) == 0
        for reset, epoch, code in (
            (OffsetReset(is_latest=False, duration_ms=0), 0, ErrorCode.OFFSET_NOT_AVAILABLE),
            (OffsetReset(), 7, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            with pytest.raises(KafkaError) as raised:
                await begin(reset, epoch)
            assert raised.value.code == code


async def test_search_is_repeated_if_segments_were_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    search = DetachedLog.offset_for_timestamp

    def search_too_late(log: DetachedLog, timestamp_ms: int, *, up_to_offset: int) -> Steps[None]:
        del log, timestamp_ms, up_to_offset
        yield
        monkeypatch.setattr(DetachedLog, "offset_for_timestamp", search)
        raise FileNotFoundError(2, "removed")

    _never_at_once(monkeypatch)
    async with share_broker(tmp_path) as share:
        await append(await share.client(), "t", batch(b"a"))
        (partition,) = share.broker.replicas.find("t", b"", by_id=False)[0].values()
        monkeypatch.setattr(DetachedLog, "offset_for_timestamp", search_too_late)
        reset = OffsetReset(is_latest=False, duration_ms=60_000)
        epoch = partition.leader_epoch
        assert await start_offset(partition, reset, leader_epoch=epoch, clock=StoppedClock()) == 0


def _never_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TakesLongError

    monkeypatch.setattr(start_offsets, "find_quickly", refuse)
