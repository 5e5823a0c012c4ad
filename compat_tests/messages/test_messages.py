"""Every consumer reads what every producer writes: codecs, keys, headers, nulls, sizes, times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.clients.all import CLIENTS, LIBRARIES
from compat_tests.clients.message import CODECS, Client, Message
from compat_tests.support import topics

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

HEADERS = (("trace", b"77"), ("trace", b"78"), ("empty", b""))
JULY_2020_MS = 1_593_561_600_000


def named(clients: tuple[Client, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", clients, ids=[client.name for client in clients])


@pytest.mark.shows("produce, consume")
@pytest.mark.parametrize("codec", CODECS)
@named(CLIENTS)
def test_every_client_reads_records_of_this_client_and_codec(
    broker: Broker, topic: str, client: Client, codec: str
) -> None:
    messages = [
        Message(b"value %d " % number * 40, b"key %d" % number, HEADERS) for number in range(200)
    ]
    topics.create(broker.bootstrap, topic)
    client.produce(broker.bootstrap, topic, messages, codec=codec)
    for reader in CLIENTS:
        read = reader.consume(broker.bootstrap, topic, len(messages))
        assert [message.content for message in read] == [message.content for message in messages], (
            reader.name
        )
        assert [message.offset for message in read] == list(range(len(messages))), reader.name


@named(LIBRARIES)
def test_null_and_empty_keys_values_and_headers_are_preserved(
    broker: Broker, topic: str, client: Client
) -> None:
    messages = [
        Message(None, b"deleted"),
        Message(b"", b""),
        Message(b"no key", None),
        Message(b"null header", None, (("null", None), ("also", b"x"))),
    ]
    if client.name == "kafka-python":  # its encoder requires bytes
        messages[3] = Message(b"no null header", None, (("also", b"x"),))
    topics.create(broker.bootstrap, topic)
    client.produce(broker.bootstrap, topic, messages)
    for reader in LIBRARIES:
        read = reader.consume(broker.bootstrap, topic, len(messages))
        assert [message.content for message in read] == [message.content for message in messages], (
            reader.name
        )


@named(LIBRARIES)
def test_create_time_comes_from_producer(broker: Broker, topic: str, client: Client) -> None:
    messages = [Message(b"%d" % n, timestamp_ms=JULY_2020_MS + 1000 * n) for n in range(5)]
    # Retention must not delete records of 2020 during the test.
    topics.create(broker.bootstrap, topic, configs={"retention.ms": "-1"})
    client.produce(broker.bootstrap, topic, messages, codec="lz4")
    for reader in CLIENTS:
        read = reader.consume(broker.bootstrap, topic, len(messages))
        assert [message.timestamp_ms for message in read] == [
            message.timestamp_ms for message in messages
        ]
        assert {message.timestamp_type for message in read} == {"create"}, reader.name


@named(LIBRARIES)
def test_log_append_time_replaces_producer_timestamp(
    broker: Broker, topic: str, client: Client
) -> None:
    topics.create(broker.bootstrap, topic, configs={"message.timestamp.type": "LogAppendTime"})
    messages = [Message(b"%d" % n, timestamp_ms=JULY_2020_MS) for n in range(5)]
    client.produce(broker.bootstrap, topic, messages, codec="gzip")
    for reader in CLIENTS:
        read = reader.consume(broker.bootstrap, topic, len(messages))
        assert {message.timestamp_type for message in read} == {"append"}, reader.name
        assert all((message.timestamp_ms or 0) > JULY_2020_MS for message in read), reader.name


@named(CLIENTS)
def test_first_write_creates_topic(broker: Broker, topic: str, client: Client) -> None:
    client.produce(broker.bootstrap, topic, [Message(b"first", b"k")])
    read = client.consume(broker.bootstrap, topic, 1)
    assert [message.value for message in read] == [b"first"]


@pytest.mark.parametrize("compression", ["gzip", "zstd", "uncompressed"])
def test_topic_compression_type_does_not_change_read_records(
    broker: Broker, topic: str, compression: str
) -> None:
    topics.create(broker.bootstrap, topic, configs={"compression.type": compression})
    messages = [Message(b"value %d " % n * 30, b"k%d" % n, HEADERS) for n in range(100)]
    for codec in ("none", "snappy"):
        LIBRARIES[0].produce(broker.bootstrap, topic, messages, codec=codec)
    for reader in CLIENTS:
        read = reader.consume(broker.bootstrap, topic, 200)
        assert [message.content for message in read] == [
            message.content for message in messages
        ] * 2, reader.name
