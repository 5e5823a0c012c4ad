"""Quotas that are set and removed from the console."""

from __future__ import annotations

import pytest

from tests.support.console.changes import made, prepared
from tests.support.console.guarded_cluster import guarded_cluster
from wirebroker.client.configs.quotas import EntityQuotas, list_quotas
from wirebroker.client.errors import ClientError
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds.quotas import entity_fields


@pytest.mark.parametrize(
    ("values", "entity", "name"),
    [
        ({"user": "anna"}, {"user": "anna"}, "user anna"),
        ({"user": "<default>"}, {"user": None}, "user <default>"),
        (
            {"user": "anna", "client-id": "<default>"},
            {"user": "anna", "client-id": None},
            "client-id <default>, user anna",
        ),
        ({"client-id": "app"}, {"client-id": "app"}, "client-id app"),
    ],
)
async def test_quotas_of_clients_are_set_and_removed(tmp_path, values, entity, name):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(
            c, "set-quotas", **values, producer_byte_rate="1048576", request_percentage="12.5"
        )
        assert plan.summary == f"Set 2 quotas of {name}"
        assert plan.lines[:2] == (
            "producer_byte_rate: not set → 1048576",
            "request_percentage: not set → 12.5",
        )
        assert await list_quotas(c.client, {}) == []
        await plan.apply()
        set_quotas = {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}
        assert await list_quotas(c.client, {}) == [EntityQuotas(entity, set_quotas)]
        assert entity_fields(entity) == values
        plan = await prepared(c, "set-quotas", **values, producer_byte_rate="1")
        assert plan.lines[0] == "producer_byte_rate: 1048576 → 1"
        plan = await prepared(c, "remove-quotas", **values, quota="request_percentage")
        assert plan.lines[0] == "request_percentage: 12.5 → not set"
        await plan.apply()
        await made(c, "remove-quotas", **values)
        assert await list_quotas(c.client, {}) == []


async def test_quotas_of_addresses_are_set(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await made(c, "set-quotas", ip="127.0.0.9", connection_creation_rate="5")
        assert await list_quotas(c.client, {}) == [
            EntityQuotas({"ip": "127.0.0.9"}, {"connection_creation_rate": 5.0})
        ]


@pytest.mark.parametrize(
    ("kind", "values", "field", "message"),
    [
        ("set-quotas", {"producer_byte_rate": "1"}, "user", "name whose quota it is"),
        ("set-quotas", {"user": "a"}, "producer_byte_rate", "at least one quota"),
        ("set-quotas", {"user": "a", "ip": "10.0.0.1", "producer_byte_rate": "1"}, "ip", "its own"),
        (
            "set-quotas",
            {"ip": "10.0.0.1", "producer_byte_rate": "1"},
            "producer_byte_rate",
            "cannot have the quota",
        ),
        (
            "set-quotas",
            {"user": "a", "connection_creation_rate": "1"},
            "connection_creation_rate",
            "cannot have the quota",
        ),
        *(
            (
                "set-quotas",
                {"user": "a", "producer_byte_rate": text},
                "producer_byte_rate",
                "is not a",
            )
            for text in ("-1", "0", "nan", "inf", "1_000", "1e999", "much")
        ),
        ("remove-quotas", {"user": "a"}, "quota", "has no quota"),
        (
            "remove-quotas",
            {"user": "a", "quota": "producer_byte_rate"},
            "quota",
            "has no quota producer_byte_rate",
        ),
    ],
)
async def test_wrong_values_are_refused(tmp_path, kind, values, field, message):
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ChangeError, match=message) as refused:
            await prepared(c, kind, **values)
        assert refused.value.field == field


async def test_what_the_brokers_refuse_is_refused_before_the_confirmation(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ClientError, match="cannot be changed"):
            await prepared(c, "set-quotas", ip="no address", connection_creation_rate="5")
