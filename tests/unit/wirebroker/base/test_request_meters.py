"""Phases of requests add up to their totals, on a simulated stopwatch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from wirebroker.base import request_meters
from wirebroker.base.request_meters import STOPWATCH, LateSend, Phase, RequestMeter, RequestMeters

if TYPE_CHECKING:
    from types import FrameType


class Stopwatch:
    """Seconds that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def watch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def meter(watch: Stopwatch) -> RequestMeter:
    return RequestMeters(watch).meter("Metadata")


def sums_us(meter: RequestMeter) -> dict[str, int]:
    """Return the sum of each phase; each has as many values as there were requests."""
    assert {meter.of(phase).count for phase in Phase} == {meter.totals.count}
    assert all(count >= 0 for phase in Phase for count in meter.of(phase).counts)
    return {phase.name: meter.of(phase).total for phase in Phase if meter.of(phase).total}


def test_request_answered_immediately_counts_as_local_time(watch: Stopwatch, meter: RequestMeter):
    watch.now_s = 100.25
    meter.served(99.9999, 100.0, 80)
    assert sums_us(meter) == {"TOTAL": 250_000, "LOCAL": 250_000}


def test_request_waiting_behind_others_counts_as_queue_time(watch: Stopwatch, meter: RequestMeter):
    watch.now_s = 100.25
    meter.served(99.0, 100.0, 80)
    assert sums_us(meter) == {"TOTAL": 1_250_000, "QUEUE": 1_000_000, "LOCAL": 250_000}


def test_deferred_response_counts_as_remote_time(watch: Stopwatch, meter: RequestMeter):
    watch.now_s = 102.25
    meter.served_later(0.0, 100.0, 100.25)
    assert sums_us(meter) == {"TOTAL": 2_250_000, "LOCAL": 250_000, "REMOTE": 2_000_000}


@pytest.mark.parametrize("comes_later", [False, True])
def test_slowly_read_response_counts_as_send_time(
    watch: Stopwatch, meter: RequestMeter, *, comes_later: bool
):
    watch.now_s = 102.25
    if comes_later:
        meter.served_later(0.0, 100.0, 100.25)
    else:
        meter.served(0.0, 102.0, 80)
    before = sums_us(meter)
    late = LateSend(meter, watch())
    meter.served(0.0, 101.75, 80)  # another request of this API before the first was sent
    watch.now_s += 4
    late.ended()
    after = sums_us(meter)
    assert after == before | {
        "TOTAL": before["TOTAL"] + 500_000 + 4_000_000,
        "LOCAL": 750_000,
        "SEND": 4_000_000,
    }


def test_compiled_clock_agrees_with_stopwatch():
    meter = RequestMeters().meter("Metadata")
    before_s = STOPWATCH()
    meter.served(0.0, before_s - 50.0, 80)
    assert 0 <= meter.totals.total - 50_000_000 <= (STOPWATCH() - before_s) * 1_000_000
    assert meter.last_us == meter.totals.total
    assert (meter.sizes.count, meter.sizes.total) == (1, 80)
    assert sum(meter.totals.counts) == sum(meter.sizes.counts) == 1


@pytest.mark.skipif(request_meters._COUNT_SLOW is None, reason="counted in Python")
def test_compiled_build_counts_slow_requests_without_python_calls(
    meter: RequestMeter, watch: Stopwatch
):
    called: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and not isinstance(frame.f_locals.get("self"), Stopwatch):
            called.append(frame.f_code.co_qualname)

    meter.served(99.0, 100.0, 80)  # creates the histograms of slow requests
    sys.setprofile(note)
    try:
        meter.served(99.0, 100.0, 80)
        meter.served_later(0.0, 100.0, 100.25)
        meter.sent_late(1_000, 2_000, was_slow=True)
    finally:
        sys.setprofile(None)
    assert called == []
    assert meter.totals.count == meter.of(Phase.SEND).count == 3


def test_errors_are_counted_by_code(meter: RequestMeter):
    meter.errors.update({3: 2})
    meter.errors.update({3: 1, 6: 1})
    assert meter.errors == {3: 3, 6: 1}
