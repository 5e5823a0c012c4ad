"""Quota meters, in simulated time."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.quotas.mutation_quota import MutationQuotas, TokenBucket
from wirebroker.coordinator.quotas.sampled_rate import SampledRate
from wirebroker.coordinator.quotas.shared_meters import SharedMeters
from wirebroker.quotas.client_quotas import ClientRates

if TYPE_CHECKING:
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas

LIMIT = 1_000_000


def kafkas_rate() -> SampledRate:
    return SampledRate(samples=11, sample_ms=1000)


def taken(*, request_bytes: int, offered: float, until_s: float) -> list[tuple[float, int]]:
    """Return the time and size of each request of a client that obeys throttling."""
    rate = kafkas_rate()
    now_ms = 0.0
    brought: list[tuple[float, int]] = []
    while now_ms < until_s * 1000:
        now_ms += request_bytes / (offered * LIMIT) * 1000
        rate.count(request_bytes, now_ms)
        brought.append((now_ms, request_bytes))
        now_ms += rate.delay_ms(LIMIT, now_ms)
    return brought


def shares(brought: list[tuple[float, int]], begin_s: int) -> list[float]:
    """Return the throughput of 30 s as a share of the quota, per starting second."""
    begins_ms = [second * 1000 for second in range(begin_s, begin_s + 12)]
    return [
        sum(size for at, size in brought if begin <= at < begin + 30_000) / 30 / LIMIT
        for begin in begins_ms
    ]


@pytest.mark.parametrize("offered", [2, 4])
@pytest.mark.parametrize("request_bytes", [16_000, 64_000])
def test_client_above_quota_is_throttled_to_it_over_30_s(
    request_bytes: int, offered: float
) -> None:
    brought = taken(request_bytes=request_bytes, offered=offered, until_s=165)
    for share in shares(brought, 120):
        assert 0.95 < share < 1.05


def test_initial_burst_shows_in_the_first_minute_rates() -> None:
    early = shares(taken(request_bytes=64_000, offered=2, until_s=60), 11)
    assert 0.83 < min(early) < 0.95
    assert 1.05 < max(early) < 1.11


@pytest.mark.parametrize("offered", [1.2, 10, 100])
def test_long_run_throughput_is_the_quota_at_any_load(offered: float) -> None:
    brought = taken(request_bytes=64_000, offered=offered, until_s=360)
    total = sum(size for at, size in brought if at >= 60_000)
    assert 0.95 < total / 300 / LIMIT < 1.05


def test_idle_client_may_burst_ten_seconds_of_quota() -> None:
    rate = kafkas_rate()
    rate.count(10 * LIMIT, 5.0)
    assert rate.delay_ms(LIMIT, 5.0) == 0
    rate.count(LIMIT, 5.0)
    assert rate.delay_ms(LIMIT, 5.0) == 1000
    assert rate.delay_ms(LIMIT, 11_006.0) == 0, "the sample is as old as the window"


def test_undone_count_has_no_effect() -> None:
    rate = kafkas_rate()
    rate.count(10 * LIMIT, 1.0)
    rate.count(5, 1.0)
    rate.count(-5, 1.0)
    assert rate.per_second(1.0) == LIMIT


def test_token_bucket_starts_full_and_may_go_into_debt() -> None:
    bucket = TokenBucket(burst_s=11)
    assert bucket.tokens(2.0, 0) == 22
    bucket.take(30, 2.0, 0)
    assert bucket.delay_ms(2.0, 0) == 4000
    assert bucket.delay_ms(2.0, 3000) == 1000
    assert bucket.tokens(2.0, 1_000_000) == 22


CLIENT = "user", "client"
QUOTAS: ClientQuotas = {(("user", "user"),): {"controller_mutation_rate": 1.0}}


def test_client_that_knows_the_error_is_refused_above_quota() -> None:
    quotas = MutationQuotas(samples=2, sample_s=1)
    first = quotas.charge(ApiKey.CREATE_TOPICS, 6, CLIENT, QUOTAS, 0)
    first.take(5)  # more than the burst: the excess is owed
    with pytest.raises(KafkaError) as raised:
        first.take(1)
    assert (raised.value.code, first.throttle_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 3000)
    later = quotas.charge(ApiKey.DELETE_TOPICS, 5, CLIENT, QUOTAS, 3000)
    later.take(1)
    assert later.throttle_ms == 0


def test_older_client_is_served_and_throttled() -> None:
    quotas = MutationQuotas(samples=2, sample_s=1)
    charge = quotas.charge(ApiKey.CREATE_PARTITIONS, 2, CLIENT, QUOTAS, 0)
    charge.take(5)
    charge.take(1)
    assert charge.throttle_ms == 4000


@pytest.mark.parametrize(
    ("key", "owner", "quotas"),
    [
        (ApiKey.CREATE_TOPICS, None, QUOTAS),
        (ApiKey.CREATE_TOPICS, ("other", "client"), QUOTAS),
        (ApiKey.ALTER_CONFIGS, CLIENT, QUOTAS),
        (ApiKey.CREATE_TOPICS, CLIENT, {}),
    ],
)
def test_requests_without_a_mutation_quota_are_not_charged(
    key: ApiKey, owner: tuple[str, str] | None, quotas: ClientQuotas
) -> None:
    charge = MutationQuotas(samples=1, sample_s=1).charge(key, 7, owner, quotas, 0)
    charge.take(1_000_000)
    charge.take(1_000_000)
    assert charge.throttle_ms == 0


def test_meters_are_shared_renewed_on_quota_change_and_expire_idle() -> None:
    made: list[SampledRate] = []

    def make() -> SampledRate:
        made.append(kafkas_rate())
        return made[-1]

    meters = SharedMeters("k", make)
    assert meters.find("u", "c", 0) is None
    meters.follow({(("user", "u"),): {"k": 1.0}})
    first, second = meters.find("u", "a", 0), meters.find("u", "b", 0)
    assert first == second == (made[0], 1.0), "a user's clients share it"
    meters.follow({(("user", "u"),): {"k": 2.0}})
    assert meters.find("u", "a", 0) == (made[0], 2.0), "the measured rate stays"
    meters.follow({(("client-id", None),): {"k": 3.0}})
    made[0].count(1, 0)
    assert meters.find("u", "a", 3_600_001) == (made[1], 3.0)
    meters.follow({(("user", "u"),): {"k": 1.0}})
    assert meters.find("u", "a", 3_600_001) == (made[2], 1.0), "the idle one is gone"


def test_memory_is_bounded_for_any_number_of_client_names() -> None:
    meters = SharedMeters("k", kafkas_rate)
    meters.follow({(("client-id", None),): {"k": 3.0}})
    for number in range(10_500):
        meters.find("u", str(number), 0)
    assert len(meters._meters) == 10_000
    assert len(meters._applied) <= 10_000


@pytest.mark.parametrize("limit", [1e-9, 1e-300, 5e-324])
def test_throttle_time_of_a_tiny_quota_fits_the_response(limit: float) -> None:
    rate, bucket = kafkas_rate(), TokenBucket(burst_s=10.0)
    rate.count(100 << 20, 1.0)
    bucket.take(1_000_000, limit, 1.0)
    assert rate.delay_ms(limit, 1.0) == bucket.delay_ms(limit, 1.0) == 2**31 - 1


@pytest.mark.parametrize("limit", [float("nan"), float("inf")])
def test_nan_quota_throttles_nobody(limit: float) -> None:
    quotas: ClientQuotas = {(("user", "alice"),): {"consumer_byte_rate": limit}}
    rates = ClientRates("consumer_byte_rate", samples=11, sample_s=1)
    rates.follow(quotas)
    assert rates.count(("alice", ""), 100 << 20, 1.0) == 0
    assert rates.max_burst(("alice", ""), 1.0) == float("inf")
    bucket = TokenBucket(burst_s=10.0)
    bucket.take(1_000_000, limit, 1.0)
    assert bucket.delay_ms(limit, 1.0) == 0


@pytest.mark.parametrize("limit", [0.0, -5.0, float("-inf")])
def test_stored_quota_of_zero_lets_nothing_through(limit: float) -> None:
    quotas: ClientQuotas = {(("user", "alice"),): {"consumer_byte_rate": limit}}
    rates = ClientRates("consumer_byte_rate", samples=11, sample_s=1)
    rates.follow(quotas)
    assert rates.max_burst(("alice", ""), 1.0) == 0
    assert rates.count(("alice", ""), 1, 1.0) == 2**31 - 1
    bucket = TokenBucket(burst_s=10.0)
    bucket.take(1, limit, 1.0)
    assert bucket.delay_ms(limit, 1.0) == 2**31 - 1


def test_memory_is_bounded_for_any_length_of_client_names() -> None:
    quotas: ClientQuotas = {
        (("client-id", None),): {"producer_byte_rate": 1.0},
        (("client-id", "x" * 32_000),): {"producer_byte_rate": 7.0},
    }
    meters = SharedMeters("producer_byte_rate", kafkas_rate)
    meters.follow(quotas)
    tracemalloc.start()
    results = [meters.find("u" * 30_000, f"{n:032000}", 1.0) for n in range(200)]
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1 << 20
    assert len({id(meter) for meter, _ in filter(None, results)}) == 200
    assert meters.find("u" * 30_000, f"{7:032000}", 2.0) == results[7]
    named = meters.find("u", "x" * 32_000, 1.0)
    assert named is not None
    assert named[1] == 7.0
