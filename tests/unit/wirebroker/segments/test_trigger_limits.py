"""The start of a stream's micro-batches: by count or after a wait."""

from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.segments.trigger_limits import TriggerGate, delay_ms_of


def test_a_micro_batch_begins_at_so_many_offsets_or_behind_so_long_a_wait():
    clock = HandClock()
    gate = TriggerGate(10, 5_000, clock)
    before, few, many = {("t", 0): 5}, {("t", 0): 14}, {("t", 0): 15}
    assert gate.opens(before, few), "a run's first does not wait"
    assert not gate.opens(before, few)
    assert gate.opens(before, many)
    clock.passed_ms += 4_999
    assert not gate.opens(before, few)
    clock.passed_ms += 1
    assert gate.opens(before, few)
    assert not gate.opens(before, few), "the wait begins anew"


def test_without_a_fewest_count_none_waits():
    gate = TriggerGate(None, 900_000, HandClock())
    assert all(gate.opens({("t", 0): 5}, {("t", 0): 5}) for _ in range(3))


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        *(("15m", 900_000), ("2MIN", 120_000), (" 30s ", 30_000), ("1h", 3_600_000)),
        *(("1d", 86_400_000), ("200ms", 200), ("300", 300), ("2500us", 2)),
    ],
)
def test_a_delay_is_written_as_spark_has_it(text, delay_ms):
    assert delay_ms_of("maxTriggerDelay", text) == delay_ms
