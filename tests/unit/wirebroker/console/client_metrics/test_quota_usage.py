"""Which quota a meter of clients belongs to, and how much of it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.console.client_metrics.broker_clients import ADDRESS, BrokerClients, ClientMeter
from wirebroker.console.client_metrics.quota_usage import QuotaUse, uses_of
from wirebroker.coordinator.quotas.quota_entity import applied_quota, entity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PRODUCE = "producer_byte_rate"


def meter(user: str = "", client_id: str = "", rate: float = 1.0, **others: float) -> ClientMeter:
    return ClientMeter("Produce", user, client_id, "", rate, others.get("throttle_ms"))


def uses(
    entities: list[Mapping[str, str | None]], meters: dict[int, list[ClientMeter]]
) -> dict[tuple[tuple[str, str | None], ...], QuotaUse]:
    quotas = {entity_of(entity.items()): (PRODUCE,) for entity in entities}
    clients = {
        broker_id: BrokerClients(meters=tuple(of_broker)) for broker_id, of_broker in meters.items()
    }
    return {entity: use for (entity, _), use in uses_of(quotas, clients).items()}


@pytest.mark.parametrize(
    ("entities", "user", "client_id"),
    [
        ([{"user": "a"}], "a", ""),
        ([{"user": None}], "a", ""),
        ([{"user": "a"}, {"user": None}], "b", ""),
        ([{"client-id": "c"}, {"client-id": None}], "", "c"),
        ([{"client-id": None}], "", "c"),
        ([{"user": "a", "client-id": "c"}, {"user": "a"}], "a", "c"),
        ([{"user": "a", "client-id": None}, {"user": None, "client-id": "c"}], "a", "c"),
        ([{"user": None, "client-id": "c"}, {"user": None, "client-id": None}], "a", "c"),
        ([{"user": None, "client-id": None}], "a", "c"),
    ],
)
def test_a_meter_belongs_to_the_quota_that_the_broker_applies(entities, user, client_id):
    """The expectation is the broker's own choice among the same quotas."""
    found = uses(entities, {1: [meter(user, client_id)]})
    limits = {entity_of(entity.items()): {PRODUCE: float(n)} for n, entity in enumerate(entities)}
    applied = applied_quota(limits, PRODUCE, user=user, client_id=client_id)
    assert applied is not None
    assert (applied.user, applied.client_id) == (user, client_id)
    assert list(found) == [entity_of(entities[int(applied.limit)].items())]


def test_the_busiest_broker_and_client_count():
    found = uses(
        [{"user": None}],
        {
            1: [meter("a", rate=3.0, throttle_ms=5.0), meter("b", rate=1.0)],
            2: [meter("a", rate=9.0, throttle_ms=0.0)],
        },
    )
    assert found == {(("user", None),): QuotaUse(9.0, 2, "a", 5.0, 3)}


@pytest.mark.parametrize(
    ("entity", "of_meter"),
    [
        ({"user": "a"}, meter("b")),
        ({"user": "a"}, meter("a", "c")),
        ({"user": "a"}, meter("a")._replace(kind="Fetch")),
        ({"user": "a"}, meter("a")._replace(kind="LeaderReplication")),
        ({"ip": "10.0.0.1"}, meter("10.0.0.1")),
    ],
    ids=["other-user", "other-level", "other-key", "replication", "address"],
)
def test_other_meters_do_not_belong_to_a_quota(entity, of_meter):
    assert uses([entity], {1: [of_meter]}) == {}


def test_addresses_have_their_own_quotas():
    quotas = {entity_of([("ip", None)]): ("connection_creation_rate",)}
    of_address = ClientMeter(ADDRESS, "", "", "10.0.0.1", 4.0, None)
    [use] = uses_of(quotas, {1: BrokerClients(meters=(of_address,))}).values()
    assert use == QuotaUse(4.0, 1, "10.0.0.1", None, 1)


@pytest.mark.parametrize("address", ["2001:db8::1", "2001:0DB8:0:0:0:0:0:1"])
@pytest.mark.parametrize("of_quota", ["2001:db8::1", "2001:db8:0:0:0:0:0:1"])
def test_spellings_of_an_ipv6_address_are_equal(address, of_quota):
    entity = entity_of([("ip", of_quota)])
    meter_of_address = ClientMeter(ADDRESS, "", "", address, 4.0, None)
    clients = {1: BrokerClients(meters=(meter_of_address,))}
    found = uses_of({entity: ("connection_creation_rate",)}, clients)
    assert list(found) == [(entity, "connection_creation_rate")]
