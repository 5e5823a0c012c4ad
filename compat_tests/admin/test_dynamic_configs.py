"""Dynamic broker configs, name by name, and the effects of changed listeners.

Changes are only validated, so that the session's broker stays unchanged.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from compat_tests.support.raw_requests import BROKER_RESOURCE, DELETE, SET, Requests
from tests.support.tools.ports import HOST, free_ports
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.lookup import is_read_only, row_of
from wirebroker.config.protection import asking_names
from wirebroker.config.rows.row import Mutability, OfListener
from wirebroker.config.table import BROKER_ROWS, ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

NODE, ALL = "1", ""
# Covered by the transcripts: a class must exist, a map must name the broker's own listeners.
_NOT_BY_ITS_DEFAULT = ("ssl.engine.factory.class", "listener.security.protocol.map")
_NAMES = sorted(name for name in ROWS if not name.startswith("wirebroker."))
MAP = "listener.security.protocol.map"
# With eligible leader replicas it is permanently set for all brokers (KIP-966).
_OF_THE_CLUSTER = "min.insync.replicas"


@pytest.fixture
def requests(broker: Broker) -> Iterator[Requests]:
    connection = Requests((HOST, broker.port))
    yield connection
    connection.close()


def change(
    requests: Requests, of: str, *changes: tuple[str, int, str | None], validate_only: bool = True
) -> ErrorCode:
    entries = [{"name": n, "config_operation": o, "value": v} for n, o, v in changes]
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": of, "configs": entries}
    request = {"resources": [resource], "validate_only": validate_only}
    answer = requests.try_ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return ErrorCode(answer.responses[0].error_code)


def expected(name: str, of: str) -> ErrorCode:
    row = row_of(name)
    # Some can only be set for a listener, with its prefix.
    if name == _OF_THE_CLUSTER and of == NODE:
        return ErrorCode.INVALID_CONFIG
    is_refused = is_read_only(name) or ROWS[name].of_listener is OfListener.ONLY
    if of == ALL and row is not None and row.mutability is Mutability.PER_BROKER:
        is_refused = True
    return ErrorCode.INVALID_REQUEST if is_refused else ErrorCode.NONE


@pytest.mark.parametrize("of", [NODE, ALL])
def test_config_is_dynamic_at_the_levels_of_its_row(requests: Requests, of: str) -> None:
    values = described(requests)
    wrong: dict[str, ErrorCode] = {}
    for name in _NAMES:
        row = row_of(name)
        value = values.get(name)
        if value is None:
            value = "1" if row is None or row.default is None else row.default
        # wirebroker refuses dynamic security settings (docs/compatibility.md).
        if name in _NOT_BY_ITS_DEFAULT or (asking_names({name: value}) and not is_read_only(name)):
            continue
        code = change(requests, of, (name, SET, value))
        if code is not expected(name, of):
            wrong[name] = code
    assert wrong == {}


def described(requests: Requests) -> dict[str, str | None]:
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": NODE}
    answer = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
    return {entry.name: entry.value for entry in answer.results[0].configs}


def test_dynamic_configs_are_described_as_not_read_only(requests: Requests) -> None:
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": NODE}
    answer = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
    wrong = [
        entry.name
        for entry in answer.results[0].configs
        if entry.name in BROKER_ROWS
        and not entry.name.startswith("wirebroker.")
        and entry.read_only is not is_read_only(entry.name)
    ]
    assert wrong == []


@pytest.mark.parametrize("of", [NODE, ALL])
def test_deleting_unset_config_is_accepted(requests: Requests, of: str) -> None:
    refused = [
        name for name in _NAMES if change(requests, of, (name, DELETE, None)) is not ErrorCode.NONE
    ]
    assert refused == [_OF_THE_CLUSTER]


@pytest.fixture
def own(start_broker: StartBroker) -> Iterator[Requests]:
    """Connect to a broker whose configs the test may change."""
    connection = Requests((HOST, start_broker().port))
    yield connection
    connection.close()


def accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_listener_is_added_and_removed_with_its_connections(own: Requests) -> None:
    values = described(own)
    (port,) = free_ports(1)
    listeners, protocols = values["listeners"], values[MAP]
    assert listeners is not None
    assert protocols is not None
    if "CONTROLLER://" in listeners and "CONTROLLER:" not in protocols:
        protocols += ",CONTROLLER:PLAINTEXT"
    added = ("listeners", SET, f"{listeners},INSIDE://{HOST}:{port}")
    assert change(own, NODE, added, validate_only=False) is ErrorCode.INVALID_REQUEST
    mapped = (MAP, SET, f"{protocols},INSIDE:PLAINTEXT")
    assert change(own, NODE, added, mapped, validate_only=False) is ErrorCode.NONE
    own.poll(lambda: accepts(port))
    with socket.create_connection((HOST, port), timeout=30) as inside:
        original = ("listeners", SET, listeners)
        assert change(own, NODE, original, validate_only=False) is ErrorCode.NONE
        assert inside.recv(1) == b""
    own.poll(lambda: not accepts(port))


def test_lowering_max_connections_closes_excess_connections(own: Requests) -> None:
    address = own.address
    connections = [Requests(address) for _ in range(3)]
    for connection in connections:
        described(connection)
    lower = ("max.connections", SET, "3")
    assert change(own, NODE, lower, validate_only=False) is ErrorCode.NONE
    with pytest.raises((OSError, AssertionError)):
        own.poll(lambda: not described(connections[0]))  # until it is closed
    assert described(connections[2])["max.connections"] == "3"
    assert change(own, NODE, ("max.connections", DELETE, None), validate_only=False) is (
        ErrorCode.NONE
    )
    for connection in connections:
        connection.close()


def test_connections_per_ip_are_limited(own: Requests) -> None:
    limited = ("max.connections.per.ip.overrides", SET, f"{HOST}:1")
    assert change(own, NODE, limited, validate_only=False) is ErrorCode.NONE

    def is_refused() -> bool:
        with socket.create_connection(own.address, timeout=1) as connection:
            try:
                return connection.recv(1) == b""
            except ConnectionError:
                return True
            except TimeoutError:
                return False

    own.poll(is_refused)
    unlimited = ("max.connections.per.ip.overrides", DELETE, None)
    assert change(own, NODE, unlimited, validate_only=False) is ErrorCode.NONE
    own.poll(lambda: not is_refused())
