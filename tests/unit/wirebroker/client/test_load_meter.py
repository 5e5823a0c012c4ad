"""The figures of a client's run."""

from __future__ import annotations

import pytest

from wirebroker.client.records.load_meter import LoadMeter


def test_rates_use_the_elapsed_time():
    meter = LoadMeter(100.0)
    meter.add(10, 1 << 20, 0.1)
    first = meter.window(102.0)
    assert (first.records_per_s, first.megabytes_per_s) == (5.0, 0.5)
    meter.add(30, 3 << 20, 0.3)
    second = meter.window(103.0)
    assert (second.records, second.records_per_s) == (30, 30.0)
    total = meter.total(104.0)
    assert (total.records, total.records_per_s, total.megabytes_per_s) == (40, 10.0, 1.0)
    assert total.mean_ms == pytest.approx(250)
    assert total.most_ms == pytest.approx(300)


def test_percentiles_count_records_not_batches():
    meter = LoadMeter(0.0)
    meter.add(98, 1, 0.001)
    meter.add(1, 1, 0.010)
    meter.add(1, 1, 0.100)
    assert meter.percentiles_ms(0.5, 0.98, 0.99, 1.0) == [1.0, 1.0, 10.0, 100.0]


def test_empty_meter_has_zero_rates():
    meter = LoadMeter(0.0)
    assert meter.total(0.0).records_per_s == 0
    assert meter.percentiles_ms(0.5) == [0.0]
