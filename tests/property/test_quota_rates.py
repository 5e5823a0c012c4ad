"""A sampled rate against a model that keeps every event and counts the rate from them."""

from __future__ import annotations

from random import Random

import pytest

from wirebroker.coordinator.quotas.sampled_rate import SampledRate

SAMPLE_MS = 100


class Model:
    """Samples as lists of events, which are summed only on request."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.events: list[list[tuple[int, int]]] = []

    def count(self, amount: int, now: int) -> None:
        live = self.live(now)
        if not live or now - live[-1][0][0] >= SAMPLE_MS:
            live.append([])
        live[-1].append((now, amount))
        self.events = live

    def live(self, now: int) -> list[list[tuple[int, int]]]:
        return [sample for sample in self.events if now - sample[-1][0] < self.samples * SAMPLE_MS]

    def per_second(self, now: int) -> float:
        live = self.live(now)
        elapsed = now - live[0][0][0] if live else 0
        full_samples = elapsed // SAMPLE_MS
        elapsed += max(0, self.samples - 1 - full_samples) * SAMPLE_MS
        return sum(amount for sample in live for _, amount in sample) * 1000 / max(1, elapsed)


@pytest.mark.parametrize("seed", range(20))
def test_rate_equals_its_model(seed: int) -> None:
    rng = Random(seed)
    for _ in range(2):
        samples = rng.choice([1, 2, 11])
        rate, model, now = SampledRate(samples=samples, sample_ms=SAMPLE_MS), Model(samples), 0
        for _ in range(120):
            now += rng.choice([0, 1, 7, 60, 130, 1500])
            if rng.random() < 0.7:
                amount = rng.randrange(1000)
                rate.count(amount, now)
                model.count(amount, now)
            assert abs(rate.per_second(now) - model.per_second(now)) < 1e-6
            limit = rng.choice([1, 500, 5000])
            delay = rate.delay_ms(limit, now)
            assert (delay > 0) <= (model.per_second(now) > limit)


@pytest.mark.parametrize("seed", range(20))
def test_waiting_for_the_returned_delay_keeps_a_client_within_the_limit(seed: int) -> None:
    rng = Random(seed)
    for _ in range(2):
        rate, now, limit = SampledRate(samples=11, sample_ms=SAMPLE_MS), 0.0, 1000
        for _ in range(60):
            now += rng.choice([1, 20, 90])
            rate.count(rng.randrange(200), now)
            delay = rate.delay_ms(limit, now)
            # The window counts fully from its first event on, so this delay always suffices.
            now += max(delay, 11 * SAMPLE_MS + 1) if delay else 0
            assert rate.delay_ms(limit, now) == 0
