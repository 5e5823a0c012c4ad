"""The start of a stream's micro-batches: by count or after a wait."""

from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.segments.trigger_limits import TriggerGate, delay_ms_of


def test_micro_batch_starts_at_a_minimum_of_offsets_or_after_a_delay():
    clock = HandClock()
    admission = TriggerGate(10, 5_000, clock)
    before, few, many = {("t", 0): 5}, {("t", 0): 14}, {("t", 0): 15}
    assert admission.opens(before, few), "a run's first does not wait"
    assert not admission.opens(before, few)
    assert admission.opens(before, many)
    clock.passed_ms += 4_999
    assert not admission.opens(before, few)
    clock.passed_ms += 1
    assert admission.opens(before, few)
    assert not admission.opens(before, few), "the wait starts again"


def test_no_micro_batch_waits_without_a_minimum():
    admission = TriggerGate(None, 900_000, HandClock())
    assert all(admission.opens({("t", 0): 5}, {("t", 0): 5}) for _ in range(3))


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        *(("15m", 900_000), ("2MIN", 120_000), (" 30s ", 30_000), ("1h", 3_600_000)),
        *(("1d", 86_400_000), ("200ms", 200), ("300", 300), ("2500us", 2)),
    ],
)
def test_delay_is_written_like_in_spark(text, delay_ms):
    assert delay_ms_of("maxTriggerDelay", text) == delay_ms
