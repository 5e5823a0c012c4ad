"""The most specific of several quotas applies, in Kafka's order."""

from __future__ import annotations

import pytest

from wirebroker.coordinator.quotas.quota_entity import (
    AppliedQuota,
    ClientQuotas,
    applied_quota,
    connection_rates,
    entity_of,
)

KEY = "producer_byte_rate"
BY_RANK: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", "")),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]


@pytest.mark.parametrize("rank", range(len(BY_RANK)))
def test_most_specific_quota_applies(rank: int) -> None:
    quotas: ClientQuotas = {
        entity_of(entity.items()): {KEY: float(position)}
        for position, (entity, _) in enumerate(BY_RANK)
        if position >= rank
    }
    # A quota of another type does not hide the less specific ones.
    other_quotas: ClientQuotas = {
        entity_of(entity.items()): {"request_percentage": 1.0} for entity, _ in BY_RANK[:rank]
    }
    quotas = {**quotas, **other_quotas}
    shared = BY_RANK[rank][1]
    assert applied_quota(quotas, KEY, user="u", client_id="c") == AppliedQuota(*shared, rank)


def test_client_without_matching_quota_has_none() -> None:
    quotas: ClientQuotas = {(("user", "u"),): {KEY: 1.0}, (("client-id", "c"),): {KEY: 1.0}}
    assert applied_quota(quotas, KEY, user="other", client_id="other") is None
    assert applied_quota({}, KEY, user="u", client_id="c") is None


def test_an_address_has_its_own_rate_or_the_default() -> None:
    rate = "connection_creation_rate"
    quotas: ClientQuotas = {(("ip", "10.0.0.1"),): {rate: 1.0}, (("ip", None),): {rate: 2.0}}
    assert connection_rates(quotas) == {"10.0.0.1": 1.0, None: 2.0}
    assert connection_rates({}) == {}
