from __future__ import annotations

from dataclasses import replace

import pytest

from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, ResourceType
from wirebroker.coordinator.share_partitions import share_configs
from wirebroker.coordinator.share_partitions.share_configs import OffsetReset, ShareConfigs


def configs_of(*, level: int = 2, settings: dict[str, str] | None = None, **group: str):
    configs = {name.replace("_", "."): value for name, value in group.items()}
    image = replace(
        ClusterImage(),
        features={"share.version": level},
        configs={(ResourceType.GROUP, "g"): configs},
    )
    return ShareConfigs(Config({"log.dirs": "data", **(settings or {})}), image)


def test_defaults_are_the_brokers():
    limits = configs_of().limits("g")
    assert limits == (5, 2000, 30_000, True, False)
    settings = {"group.share.delivery.count.limit": "3"}
    assert configs_of(settings=settings).limits("g").delivery_count_limit == 3


def test_groups_have_their_own():
    configs = configs_of(
        share_delivery_count_limit="7",
        share_partition_max_record_locks="300",
        share_record_lock_duration_ms="20000",
        share_renew_acknowledge_enable="false",
        share_isolation_level="read_committed",
        errors_deadletterqueue_topic_name="dlq.g",
        errors_deadletterqueue_copy_record_enable="true",
    )
    assert configs.limits("g") == (7, 300, 20_000, False, True)
    own = configs.of("g")
    assert (own.is_read_committed, own.dead_letter_topic, own.copies_dead_records) == (
        True,
        "dlq.g",
        True,
    )
    assert configs.of("other").dead_letter_topic == ""


def test_values_are_clamped_to_the_brokers_limits():
    limits = configs_of(
        share_delivery_count_limit="99", share_record_lock_duration_ms="2000"
    ).limits("g")
    assert (limits.delivery_count_limit, limits.lock_duration_ms) == (10, 15_000)


def test_values_that_cannot_be_parsed_are_ignored():
    configs = configs_of(share_delivery_count_limit="many", share_isolation_level="odd")
    assert configs.limits("g").delivery_count_limit == 5
    assert not configs.of("g").is_read_committed


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("latest", OffsetReset()),
        ("earliest", OffsetReset(is_latest=False)),
        ("by_duration:PT1H30M", OffsetReset(is_latest=False, duration_ms=5_400_000)),
    ],
)
def test_groups_begin_where_they_want(text: str, reset: OffsetReset):
    assert configs_of(share_auto_offset_reset=text).of("g").offset_reset == reset


def test_share_version_decides():
    assert not configs_of(level=0).is_enabled
    assert configs_of(level=1).is_enabled
    for level, has_dead_letters in ((1, False), (2, True)):
        configs = configs_of(level=level, errors_deadletterqueue_topic_name="dlq.g")
        assert configs.limits("g").has_dead_letters == has_dead_letters


def test_changes_apply_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(share_configs, "_MOST_GROUPS", 1)
    configs = configs_of(share_delivery_count_limit="7")
    assert configs.limits("g").delivery_count_limit == 7
    assert configs.limits("h").delivery_count_limit == 5
    configs.use(configs.config, replace(configs.image, configs={}))
    assert configs.limits("g").delivery_count_limit == 5
