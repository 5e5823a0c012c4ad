"""Configs of topics, brokers, groups and client metrics, changed from the console."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.console.changes import made, prepared
from wirebroker.client.configs.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    alter_configs,
    configs_of,
)
from wirebroker.console.changes.change import ChangeError

SECRET = "not-for-logs"


async def set_configs(collector, kind: int, name: str) -> dict[str, str | None]:
    configs = await configs_of(collector.client, kind, name)
    return {config.name: config.value for config in configs if config.is_set}


async def test_a_plan_shows_old_and_new_values_with_their_source(open_cluster):
    async with open_cluster() as c:
        values = {
            "topic": "latest",
            "set": "retention.ms=86400000\nsegment.bytes = 1048576",
            "unset": "cleanup.policy",
        }
        plan = await prepared(c, "alter-topic-configs", **values)
        assert plan.summary == "Change 3 configs of topic latest"
        assert plan.lines == (
            "retention.ms: 604800000 = 7 d (default) → 86400000 = 1 d",
            "segment.bytes: 1073741824 = 1 GiB (default) → 1048576 = 1 MiB",
            "cleanup.policy: compact → delete (default)",
        )
        assert await set_configs(c, TOPIC, "latest") == {"cleanup.policy": "compact"}
        assert await plan.apply() == "3 configs of topic latest changed"
        after = {"retention.ms": "86400000", "segment.bytes": "1048576"}
        assert await set_configs(c, TOPIC, "latest") == after


@pytest.mark.parametrize(
    ("kind", "target", "resource", "setting"),
    [
        ("alter-broker-configs", {"broker": "1"}, (BROKER, "1"), "log.retention.ms=123456"),
        ("alter-broker-configs", {"broker": "all"}, (BROKER, ""), "log.retention.ms=123456"),
        (
            "alter-group-configs",
            {"group": "<b>'none"},
            (GROUP, "<b>'none"),
            "consumer.session.timeout.ms=50000",
        ),
        ("alter-client-metrics", {"subscription": "m"}, (CLIENT_METRICS, "m"), "interval.ms=5000"),
    ],
)
async def test_configs_of_other_resources_are_set_and_reset(
    open_cluster, kind, target, resource, setting
):
    name, _, value = setting.partition("=")
    async with open_cluster() as c:
        before = await set_configs(c, *resource)
        await made(c, kind, **target, set=setting)
        assert await set_configs(c, *resource) == {**before, name: value}
        plan = await prepared(c, kind, **target, unset=name)
        assert plan.lines[0].startswith(f"{name}: {value}")
        assert plan.lines[0].endswith("(default)")
        await plan.apply()
        assert await set_configs(c, *resource) == before


async def test_a_config_of_all_brokers_is_reset_there_and_can_be_set_for_one(open_cluster):
    async with open_cluster() as c:
        name = "log.retention.ms"
        await made(c, "alter-broker-configs", broker="all", set=f"{name}=123456")
        with pytest.raises(ChangeError, match=f"{name} is set for all brokers: reset it there"):
            await prepared(c, "alter-broker-configs", broker="1", unset=name)
        plan = await prepared(c, "alter-broker-configs", broker="1", set=f"{name}=123456")
        assert plan.lines[0].startswith(f"{name}: 123456 = 2 min 3 s (all brokers) → 123456")
        await plan.apply()
        with pytest.raises(ChangeError, match="nothing would change"):
            await prepared(c, "alter-broker-configs", broker="1", set=f"{name}=123456")
        plan = await prepared(c, "alter-broker-configs", broker="1", unset=name)
        assert plan.lines[0].startswith(f"{name}: 123456")
        await plan.apply()


DELETIONS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("alter-topic-configs", {"topic": "orders", "set": "retention.ms=1000"}, ["retention.ms"]),
    ("alter-topic-configs", {"topic": "orders", "set": "retention.ms=-1"}, []),
    ("alter-topic-configs", {"topic": "orders", "set": "retention.ms=604800001"}, []),
    ("alter-topic-configs", {"topic": "orders", "set": "retention.bytes=9"}, ["retention.bytes"]),
    ("alter-topic-configs", {"topic": "orders", "set": "segment.bytes=1048576"}, []),
    ("alter-topic-configs", {"topic": "latest", "unset": "cleanup.policy"}, ["cleanup.policy"]),
    ("alter-topic-configs", {"topic": "orders", "set": "cleanup.policy=delete"}, []),
    ("alter-broker-configs", {"broker": "1", "set": "log.retention.ms=9"}, ["log.retention.ms"]),
    (
        "alter-broker-configs",
        {"broker": "all", "set": "log.retention.bytes=9\nlog.cleanup.policy=compact"},
        ["log.retention.bytes", "log.cleanup.policy"],
    ),
]


async def test_a_plan_warns_of_records_that_are_deleted(open_cluster):
    async with open_cluster() as c:
        for kind, values, names in DELETIONS:
            plan = await prepared(c, kind, **values)
            warned = [text for text in plan.warnings if "cannot be restored" in text]
            assert [text.partition(":")[0] for text in warned] == names, values


async def test_secrets_are_in_no_part_of_a_plan(open_cluster):
    async with open_cluster() as c:
        name = "listener.name.plaintext.ssl.keystore.password"
        values = {"broker": "1", "secret_name": name, "secret_value": SECRET}
        plan = await prepared(c, "alter-broker-configs", **values)
        assert plan.lines == (f"{name}: not set → (hidden)",)
        assert SECRET not in repr(plan._replace(apply=None))  # type: ignore[arg-type]
        assert f"{name}=(hidden)" in plan.command


async def test_unknown_broker_configs_are_kept_with_a_warning(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "alter-broker-configs", broker="all", set="log.retention.mss=1")
        assert "did you mean log.retention.ms?" in plan.warnings[0]
        assert plan.lines == ("log.retention.mss: not set → (hidden)",)
        assert plan.logged == {"set": "log.retention.mss=(hidden)"}


async def test_a_plan_differs_after_the_config_has_changed(open_cluster):
    async with open_cluster() as c:
        values = {"topic": "orders", "set": "retention.ms=1000"}
        plan = await prepared(c, "alter-topic-configs", **values)
        await alter_configs(c.client, TOPIC, "orders", {"retention.ms": "5000"})
        later = await prepared(c, "alter-topic-configs", **values)
        assert later.lines == ("retention.ms: 5000 = 5 s → 1000 = 1 s",)
        assert later.lines != plan.lines
