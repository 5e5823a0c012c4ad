"""The release whose features a new cluster uses, and upgrades."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.coordinators.feature_levels import new_cluster_features
from wirebroker.cli import main as cli
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.releases import RELEASE_VERSION, RELEASES, release_of
from wirebroker.coordinator.controller.features.feature_control import bootstrap_levels
from wirebroker.quorum.log.metadata_snapshot import bootstrap_records

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.server import Server

UPGRADE, SAFE = 1, 2


@pytest.mark.parametrize(
    ("level", "release"),
    [
        (0, "4.3"),
        (29, "4.3"),
        (30, "4.3"),
        (31, "4.4-IV0"),
        (32, "4.4-IV1"),
        (33, "4.4"),
        (40, "4.4"),
    ],
)
def test_mirror_gets_a_release_its_source_supports(level, release):
    assert RELEASES[release_of(level)] == RELEASES[release]


async def levels_of(directory: Path, release: str | None) -> dict[str, int]:
    settings = {} if release is None else {RELEASE_VERSION: release}
    async with running(directory, settings=settings) as server:
        return dict(broker_of(server).metadata.image.features)


async def set_level(server: Server, level: int, upgrade_type: int) -> ErrorCode:
    update = {"feature": "metadata.version", "max_version_level": level}
    update["upgrade_type"] = upgrade_type
    async with client_of(server) as client:
        request = {"feature_updates": [update], "timeout_ms": 10_000, "validate_only": False}
        answer = await client.ask(ApiKey.UPDATE_FEATURES, 2, request)
        return ErrorCode(answer.error_code)


@pytest.mark.parametrize(("release", "level"), RELEASES.items())
async def test_a_new_cluster_has_the_features_of_its_release(tmp_path, release, level):
    levels = new_cluster_features(level)
    assert await levels_of(tmp_path, release) == levels
    content = (tmp_path / "bootstrap.checkpoint").read_bytes()
    assert bootstrap_levels(bootstrap_records(content)) == levels


async def test_existing_cluster_keeps_its_features_with_a_warning(tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="wirebroker")
    assert (await levels_of(tmp_path, None))["metadata.version"] == 33
    assert (await levels_of(tmp_path, "4.4"))["metadata.version"] == 33
    assert RELEASE_VERSION not in caplog.text
    assert (await levels_of(tmp_path, "4.3"))["metadata.version"] == 33
    assert f"keeps metadata.version 33, and {RELEASE_VERSION}=4.3 has no effect" in caplog.text


async def test_cluster_of_4_3_stays_upgraded(tmp_path):
    async with running(tmp_path, settings={RELEASE_VERSION: "4.3"}) as server:
        assert await set_level(server, 33, UPGRADE) is ErrorCode.NONE
        assert await set_level(server, 30, SAFE) is ErrorCode.INVALID_UPDATE_VERSION
    assert (await levels_of(tmp_path, None))["metadata.version"] == 33


def test_release_version_flag_needs_a_new_cluster(tmp_path, capsys):
    serve = ["serve", "--data-dir", str(tmp_path), "--port", "0", "--release-version"]
    assert cli.run([*serve, "4.2"]) == 2
    assert "it must be one of 4.3, " in capsys.readouterr().err
    member = ["process.roles=broker", "node.id=2", "controller.quorum.voters=1@127.0.0.1:9093"]
    flags = [part for setting in member for part in ("--set", setting)]
    assert cli.run([*serve, "4.3", *flags]) == 2
    assert "--release-version cannot be used" in capsys.readouterr().err
