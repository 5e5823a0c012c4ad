"""The feature levels of a new cluster."""

from __future__ import annotations

import pytest

from wirebroker.config import ConfigError
from wirebroker.config.rows.releases import NEWEST_LEVEL
from wirebroker.quorum.formatting.first_levels import FirstLevels, first_levels, parse_levels


def test_latest_release_is_the_default():
    levels = first_levels(None, {}, is_dynamic=True)
    assert levels == FirstLevels(
        NEWEST_LEVEL,
        {
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 2,
            "streams.version": 1,
            "transaction.version": 2,
        },
        1,
    )
    assert levels.release == "4.4-IV2"
    assert list(levels.recorded) == ["metadata.version", *levels.levels]


def test_levels_override_those_of_the_release():
    levels = first_levels("4.3", {"group.version": 0, "share.version": 2}, is_dynamic=False)
    assert (levels.metadata_level, levels.kraft_level) == (30, 0)
    assert "group.version" not in levels.levels
    assert levels.levels["share.version"] == 2


def test_metadata_version_may_be_a_level():
    levels = first_levels(None, parse_levels(["metadata.version = 30"]), is_dynamic=False)
    assert levels.release == "4.3-IV0"


@pytest.mark.parametrize(
    ("release", "features", "is_dynamic", "message"),
    [
        ("4.3", {"metadata.version": 30}, False, "Use --release-version instead of --feature"),
        ("4.5-IV0", {}, False, "Unknown metadata.version '4.5-IV0'"),
        (None, {"metadata.version": 34}, False, "metadata.version 4.5-IV0 is not yet stable."),
        (None, {"metadata.version": 6}, False, "No MetadataVersion with feature level 6"),
        ("9.9", {}, False, "Unknown metadata.version '9.9'"),
        (None, {"nosuch": 1}, False, "Unsupported feature: nosuch. Supported features are: elig"),
        (None, {"group.version": 9}, False, "No feature:group.version with feature level 9"),
        (None, {"group.version": -1}, False, "No feature:group.version with feature level -1"),
        (None, {"kraft.version": 0}, True, "Cannot set kraft.version to 0 if controller.quorum"),
        (None, {"kraft.version": 1}, False, "Cannot set kraft.version to 1 unless controller.q"),
        (
            "3.9",
            {"eligible.leader.replicas.version": 1},
            False,
            "could not be set to 1 because it depends on metadata.version level 23",
        ),
    ],
)
def test_impossible_levels_are_refused(release, features, is_dynamic, message):
    with pytest.raises(ConfigError, match=message):
        first_levels(release, features, is_dynamic=is_dynamic)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group.version", "equals sign not found"),
        ("group.version=x", "unable to parse x as a short"),
        ("group.version=40000", "unable to parse 40000 as a short"),
    ],
)
def test_unreadable_levels_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_levels([text])
