"""Data directories that earlier versions wrote are opened, and hold all that was written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.brokers import AUTHORIZED
from tests.support.brokers.servers import client_of, running
from tests.support.records.batches import records_in
from tests.support.records.clocks import MovedClock
from tests.upgrade.content import (
    COMMITTED_PAYMENTS,
    OPEN_PAYMENT,
    TRANSACTIONAL_ID,
    check,
    wait_for_payments,
)
from tests.upgrade.fixtures import DIRECTORIES, FIXTURES, Fixture
from tests.upgrade.make_directories import ONE_REPLICA, SETTINGS, single, trio, unpack
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config.rows.releases import NEWEST_LEVEL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

SINGLE_NODES = [fixture for fixture in FIXTURES if fixture.node_count == 1]


def test_the_directories_are_small():
    assert {path.name for path in DIRECTORIES.iterdir()} == {
        fixture.archive.name for fixture in FIXTURES
    }
    sizes = [fixture.archive.stat().st_size for fixture in FIXTURES]
    assert max(sizes) < 200 << 10
    assert sum(sizes) < 1 << 20


def test_the_newest_metadata_version_has_a_fixture():
    """A commit that raises it adds one (tests/upgrade/make_directories.py)."""
    assert FIXTURES[-1].metadata_version == NEWEST_LEVEL


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_an_earlier_versions_directories_are_opened(tmp_path: Path, fixture: Fixture) -> None:
    unpack(fixture.archive, tmp_path)
    brokers = [single(tmp_path)] if fixture.node_count == 1 else [*trio(tmp_path)]
    try:
        for broker in brokers:
            broker.start()
        check(",".join(broker.bootstrap for broker in brokers), fixture)
    finally:
        for broker in reversed(brokers):
            broker.stop()


@pytest.mark.parametrize("fixture", SINGLE_NODES, ids=lambda fixture: fixture.name)
async def test_the_open_transaction_can_be_committed_before_its_timeout(
    tmp_path: Path, fixture: Fixture
) -> None:
    """A second after its last record by the broker's clock, by the epoch that it began with."""
    unpack(fixture.archive, tmp_path)
    directories = tmp_path / "first", tmp_path / "second"
    (log,) = (path for folder in directories for path in folder.glob("payments-0/*.log"))
    *_, (header, record) = records_in(log.read_bytes())
    assert record.value == OPEN_PAYMENT
    clock = MovedClock()
    clock.jumped_ms = header.max_timestamp + 1000 - clock.now_ms()
    settings = {**SETTINGS, **ONE_REPLICA, **AUTHORIZED}
    async with (
        running(*directories, settings=settings, clock=clock) as server,
        client_of(server) as client,
    ):
        assert await finalized_metadata_version(client) == fixture.metadata_version
        request = {
            "transactional_id": TRANSACTIONAL_ID,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "committed": True,
        }
        assert (await client.ask(ApiKey.END_TXN, 3, request)).error_code == 0
        bootstrap = "{}:{}".format(*server.address)
        expected = [*COMMITTED_PAYMENTS, OPEN_PAYMENT]
        await asyncio.to_thread(wait_for_payments, bootstrap, expected)


async def finalized_metadata_version(client: RawClient) -> int:
    request = {"client_software_name": "test", "client_software_version": "1"}
    answer = await client.ask(ApiKey.API_VERSIONS, 3, request)
    (level,) = (
        feature.max_version_level
        for feature in answer.finalized_features
        if feature.name == "metadata.version"
    )
    return int(level)
