"""Running clusters of earlier versions get consumer groups by `features upgrade`, and lose them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Consumer

from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.waiting import eventually
from tests.upgrade.content import PARTITIONS, WAIT_S, orders
from tests.upgrade.fixtures import FIXTURES, Fixture
from tests.upgrade.make_directories import single, trio, unpack
from wirebroker.cli import main as cli
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.release_features import levels_of_release
from wirebroker.config.rows.releases import NEWEST_LEVEL
from wirebroker.coordinator.controller.features.feature_control import KRAFT_VERSION

if TYPE_CHECKING:
    from pathlib import Path

GROUPS: Final = "group.version"
SINGLE, THREE = FIXTURES[:2]
COORDINATOR_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)


class Cluster:
    """A running cluster, and one of its brokers."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        host, port = bootstrap.partition(",")[0].split(":")
        self._client = BlockingClient((host, int(port)))

    def close(self) -> None:
        self._client.close()

    def change(self, verb: str, **levels: int) -> int:
        """Run `wirebroker features`; return its exit status."""
        changes = [f"{name.replace('_', '.')}={level}" for name, level in levels.items()]
        return cli.run(["features", verb, *changes, "-b", self.bootstrap.partition(",")[0]])

    def levels(self) -> dict[str, int]:
        request = {"client_software_name": "test", "client_software_version": "1"}
        answer = self._client.ask(ApiKey.API_VERSIONS, 3, request)
        return {feature.name: feature.max_version_level for feature in answer.finalized_features}

    def heartbeat(self) -> ErrorCode:
        """Return the error of a heartbeat of an unknown member."""
        member = {"group_id": "g", "member_id": "m", "member_epoch": 5}
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = self._client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, member)
            return answer.error_code not in COORDINATOR_ERRORS

        eventually(is_answered, timeout_s=WAIT_S)
        return ErrorCode(answer.error_code)

    def consumed(self, group: str) -> int:
        """Return how many orders a consumer of the consumer protocol reads."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        expected = sum(len(orders(partition)) for partition in range(PARTITIONS["orders"]))
        count = 0
        while count < expected:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{count} of {expected} records"
            assert message.error() is None, message.error()
            count += 1
        consumer.close()
        return count


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    fixture: Fixture = request.param
    unpack(fixture.archive, tmp_path)
    brokers = [single(tmp_path)] if fixture.node_count == 1 else [*trio(tmp_path)]
    with contextlib.ExitStack() as running:
        for broker in brokers:
            running.enter_context(broker)
        bootstrap = ",".join(broker.bootstrap for broker in brokers)
        yield running.enter_context(contextlib.closing(Cluster(bootstrap)))


@pytest.mark.parametrize(
    "cluster",
    [SINGLE, pytest.param(THREE, marks=pytest.mark.long)],
    ids=lambda fixture: fixture.name,
    indirect=True,
)
def test_an_earlier_cluster_gets_consumer_groups_while_it_runs(cluster: Cluster) -> None:
    assert cluster.levels().get(GROUPS, 0) == 0
    assert cluster.heartbeat() is not ErrorCode.UNKNOWN_MEMBER_ID
    newest = {
        name.replace(".", "_"): level
        for name, level in levels_of_release(NEWEST_LEVEL).items()
        if name != KRAFT_VERSION
    }
    assert cluster.change("upgrade", metadata_version=NEWEST_LEVEL, **newest) == 0
    expected = {"metadata.version": NEWEST_LEVEL}
    expected |= {name.replace("_", "."): level for name, level in newest.items()}
    eventually(lambda: cluster.levels() == expected, timeout_s=WAIT_S)
    assert cluster.consumed("newer") == 300
    assert cluster.change("upgrade", group_version=0) == 1
    assert cluster.change("downgrade", group_version=0) == 0
    eventually(lambda: GROUPS not in cluster.levels(), timeout_s=WAIT_S)
    assert cluster.heartbeat() is ErrorCode.UNSUPPORTED_VERSION
    assert cluster.change("upgrade", group_version=1) == 0
    eventually(lambda: cluster.levels() == expected, timeout_s=WAIT_S)
    assert cluster.consumed("newest") == 300
