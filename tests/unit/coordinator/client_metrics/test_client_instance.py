"""The requests of one client with metrics; the transcript telemetry.txt compares with Kafka."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.client_metrics.client_instance import (
    ClientInstance,
    Push,
    client_subscription,
)
from wirebroker.coordinator.client_metrics.subscription import subscription_of

ID = b"an id of a client"[:16]
NOW = 1_790_000_000_000
INTERVAL = 1_000
MOST = 100


def client_of(connection: Any = None) -> ClientInstance:
    matching = [subscription_of("s", {"metrics": "a", "interval.ms": str(INTERVAL)})]
    subscription = client_subscription(ID, matching, 1)
    return ClientInstance(ID, {}, subscription, connection or open_connection(), NOW)


def open_connection() -> Any:
    return SimpleNamespace(has_ended=False)


def pushed(client: ClientInstance, now_ms: int, **fields: Any) -> ErrorCode:
    own_id = client.subscription.subscription_id
    push = Push(own_id, 0, 10, is_terminating=False)._replace(**fields)
    return client.push(push, now_ms, MOST)


def test_subscriptions_are_joined_with_the_shortest_interval() -> None:
    matching = [
        subscription_of("a", {"metrics": "b,a", "interval.ms": "2000"}),
        subscription_of("b", {"metrics": "c,a", "interval.ms": "1000"}),
    ]
    assert client_subscription(ID, matching, 3)[1:] == (("a", "b", "c"), 1_000, 3)
    everything = [*matching, subscription_of("c", {"metrics": "x,*"})]
    assert client_subscription(ID, everything, 3).metrics == ("*",)


def test_subscription_id_depends_on_client_metrics_and_interval() -> None:
    ids = {
        client_subscription(client_id, [subscription_of("s", configs)], 1).subscription_id
        for client_id in (ID, bytes(16))
        for configs in ({"metrics": "a"}, {"metrics": "b"}, {"interval.ms": "1000"})
    }
    assert len(ids) == 6
    assert all(-(1 << 31) <= subscription_id < 1 << 31 for subscription_id in ids)


def test_requests_within_the_interval_are_throttled() -> None:
    client = client_of()
    assert client.get(NOW) is ErrorCode.NONE
    assert client.get(NOW + INTERVAL - 1) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert pushed(client, NOW + 1) is ErrorCode.NONE
    assert pushed(client, NOW + INTERVAL) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert pushed(client, NOW + 1 + INTERVAL) is ErrorCode.NONE
    assert client.get(NOW + 1 + 2 * INTERVAL) is ErrorCode.NONE


def test_a_terminating_push_is_the_last_and_never_throttled() -> None:
    client = client_of()
    assert pushed(client, NOW) is ErrorCode.NONE
    assert pushed(client, NOW, is_terminating=True) is ErrorCode.NONE
    assert pushed(client, NOW + INTERVAL, is_terminating=True) is ErrorCode.INVALID_REQUEST


def test_a_client_with_an_old_subscription_gets_the_new_one_at_once() -> None:
    client = client_of()
    assert pushed(client, NOW, subscription_id=7) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.get(NOW) is ErrorCode.NONE
    assert client.get(NOW) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_unknown_compression_and_size_are_refused() -> None:
    assert pushed(client_of(), NOW, compression_type=5) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert pushed(client_of(), NOW, compression_type=-1) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert pushed(client_of(), NOW, size=MOST + 1) is ErrorCode.TELEMETRY_TOO_LARGE
    assert pushed(client_of(), NOW, size=MOST) is ErrorCode.NONE


def test_a_client_is_gone_with_its_connection_or_after_three_intervals() -> None:
    connection = open_connection()
    client = client_of(connection)
    assert not client.is_gone(NOW + 59_999)
    assert client.is_gone(NOW + 60_000)
    connection.has_ended = True
    assert client.is_gone(NOW)
