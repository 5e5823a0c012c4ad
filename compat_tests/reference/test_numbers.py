"""Error codes, record types and feature levels equal those of Apache Kafka's classes."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.support.brokers import java_start
from tests.support.tools import java_programs, tools
from wirebroker.codecs.coordinator_records import GROUP_KIND, LEGACY_OFFSET_KIND, OFFSET_KIND
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.codecs.metadata_records import RecordType
from wirebroker.codecs.share_state_records import ShareStateKind
from wirebroker.config.rows.release_features import levels_of_release
from wirebroker.config.rows.releases import NEWEST_LEVEL, RELEASES
from wirebroker.coordinator.controller.features import feature_updates
from wirebroker.coordinator.controller.features.feature_control import (
    SUPPORTED_FEATURES,
    bootstrap_levels,
    new_cluster_levels,
)

pytestmark = pytest.mark.java

_RELEASE = tools.KAFKA_VERSION.rpartition(".")[0]


@cache
def facts() -> dict[str, dict[str, int]]:
    classes = java_programs.compiled("facts", Path(__file__).with_name("java"))
    command = java_start.command("-Xmx128m", "Facts", more_classes=classes)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers_by_kind: dict[str, dict[str, int]] = defaultdict(dict)
    for line in printed.splitlines():
        kind, name, number = line.split("\t")
        numbers_by_kind[kind][name] = int(number)
    return numbers_by_kind


def test_error_codes() -> None:
    wirebroker_codes = {code.name: int(code) for code in ErrorCode}
    assert facts()["error"].items() <= wirebroker_codes.items()
    assert not tools.IS_REFERENCE or facts()["error"] == wirebroker_codes


def test_record_types() -> None:
    wirebroker_types = {
        f"{record_type.name}_RECORD": int(record_type) for record_type in RecordType
    }
    assert facts()["record"].items() <= wirebroker_types.items()
    assert not tools.IS_REFERENCE or facts()["record"] == wirebroker_types


def test_types_of_coordinator_records() -> None:
    classic_types = {
        "LEGACY_OFFSET_COMMIT": LEGACY_OFFSET_KIND,
        "OFFSET_COMMIT": OFFSET_KIND,
        "GROUP_METADATA": GROUP_KIND,
    }
    newer_types = {kind.name: int(kind) for kind in GroupRecordKind}
    assert facts()["group record"] == classic_types | newer_types
    assert facts()["share state record"] == {kind.name: int(kind) for kind in ShareStateKind}


def test_levels_of_the_metadata_version() -> None:
    kafka_levels = facts()["metadata.version"]
    newest = max(kafka_levels.values())
    assert SUPPORTED_FEATURES["metadata.version"] == (min(kafka_levels.values()), NEWEST_LEVEL)
    assert RELEASES[_RELEASE] == newest
    assert {
        name: level for name, level in RELEASES.items() if "IV" in name and level <= newest
    } == {name: level for name, level in kafka_levels.items() if level >= min(RELEASES.values())}
    changed = set(facts()["other records"].values()) - {min(kafka_levels.values())}
    assert {level for level in feature_updates._OTHER_RECORDS if level <= newest} == changed


def test_levels_of_the_other_features() -> None:
    for name, level in facts()["feature"].items():
        highest = SUPPORTED_FEATURES[name][1]
        assert highest == level if tools.IS_REFERENCE else highest >= level, name
    wirebroker_levels = bootstrap_levels(new_cluster_levels(RELEASES[_RELEASE]))
    assert wirebroker_levels.pop("metadata.version") == RELEASES[_RELEASE]
    assert wirebroker_levels == {
        name: level for name, level in facts()["new cluster"].items() if name != "kraft.version"
    }


def test_levels_of_the_other_features_by_release() -> None:
    for level in facts()["metadata.version"].values():
        assert levels_of_release(level) == facts()[f"release {level}"]
