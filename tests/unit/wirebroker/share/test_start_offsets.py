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
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from pathlib import Path


class StoppedClock:
    def now_ms(self) -> int:
        return TIMESTAMP_MS + 1_000

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize("takes_long", [False, True])
async def test_groups_begin_where_their_configs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, takes_long: bool
):
    def refuse(*_: object, **__: object) -> None:
        raise TakesLongError

    if takes_long:
        monkeypatch.setattr(start_offsets, "find_quickly", refuse)
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
