"""DescribeLogDirs and AlterReplicaLogDirs: sizes, filters, offline and unknown directories."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import wirebroker.api.cluster.log_dirs  # noqa: F401 - registers the handlers
from tests.unit.wirebroker.api.api_kit import answer, answer_soon, make_broker
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.replication.replica_moves import ReplicaMoves


class Held:
    """A partition that equals only itself."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Replicas:
    """A topic with one partition in one directory, and two in another that may be offline."""

    def __init__(self, *, is_online):
        self.choice = self
        volume = SimpleNamespace(total_bytes=lambda: 1000, free_bytes=lambda: 400)
        self.directories = [
            SimpleNamespace(
                path="/a", is_online=True, files=volume, partitions=[], is_cordoned=False
            ),
            SimpleNamespace(
                path="/b", is_online=is_online, files=volume, partitions=[], is_cordoned=False
            ),
        ]
        self.partitions = {
            index: Held(
                topic="t",
                index=index,
                directory=self.directories[0],
                log=SimpleNamespace(size_bytes=70 + index),
            )
            for index in (0, 1)
        }
        self.directories[0].partitions = list(self.partitions.values())
        logs = [SimpleNamespace(size_bytes=1000), SimpleNamespace(size_bytes=2000)]
        self.directories[1].partitions = [
            SimpleNamespace(topic=f"u{number}", index=5, log=log) for number, log in enumerate(logs)
        ]

    @property
    def image(self):
        elsewhere = {("t", 7)}
        return SimpleNamespace(partition=lambda *known: object() if known in elsewhere else None)

    def find(self, name, _topic_id, *, by_id):
        assert not by_id
        return (self.partitions if name == "t" else {}), None

    def prefer(self, topic, index, directory):
        self.preferred = (topic, index, directory.path)


def node(*, is_online=True):
    broker = make_broker()
    replicas: Any = Replicas(is_online=is_online)
    unused: Any = None
    broker.replicas = replicas
    broker.replica_moves = ReplicaMoves(
        replicas, unused, files=unused, clock=broker.clock, quota=unused
    )
    return broker


def sizes(reply):
    return {
        (result.log_dir, topic.name, partition.partition_index): partition.partition_size
        for result in reply.results
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_all_partitions_are_described_in_every_version(version):
    reply = answer(node(), ApiKey.DESCRIBE_LOG_DIRS, version, topics=None)
    assert sizes(reply) == {
        ("/a", "t", 0): 70,
        ("/a", "t", 1): 71,
        ("/b", "u0", 5): 1000,
        ("/b", "u1", 5): 2000,
    }
    assert [result.log_dir for result in reply.results] == ["/a", "/b"]
    assert [result.error_code for result in reply.results] == [0, 0]
    if version >= 4:
        assert (reply.results[0].total_bytes, reply.results[0].usable_bytes) == (1000, 400)


def test_only_the_partitions_asked_for_are_described():
    topics = [{"topic": "t", "partitions": [1, 7]}, {"topic": "none", "partitions": [0]}]
    reply = answer(node(), ApiKey.DESCRIBE_LOG_DIRS, 5, topics=topics)
    assert sizes(reply) == {("/a", "t", 1): 71}


def test_offline_directory_is_reported():
    reply = answer(node(is_online=False), ApiKey.DESCRIBE_LOG_DIRS, 5, topics=None)
    assert [result.error_code for result in reply.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert {log_dir for log_dir, _, _ in sizes(reply)} == {"/a"}


@pytest.mark.parametrize(
    ("path", "name", "index", "code"),
    [
        ("/a", "t", 0, ErrorCode.NONE),
        ("/a", "t", 7, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("/a", "t", 8, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/a", "none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/none", "x" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/none", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/b", "t", 0, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_a_replica_is_moved_to_a_directory_that_is_online(path, name, index, code):
    dirs = [{"path": path, "topics": [{"name": name, "partitions": [index]}]}]
    reply = answer(node(is_online=False), ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=dirs)
    [result] = reply.results
    [partition] = result.partitions
    assert (partition.partition_index, partition.error_code) == (index, code)


async def test_many_replica_moves_do_not_block_other_requests(monkeypatch):
    monkeypatch.setattr(Slices, "SECONDS", 0.0)
    dirs = [{"path": "/a", "topics": [{"name": "t", "partitions": [0] * 500}]}]
    judged = asyncio.create_task(answer_soon(node(), ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=dirs))
    turns = 0
    while not judged.done():
        await next_turn()
        turns += 1
    assert turns >= 500
    [result] = judged.result().results
    assert [partition.error_code for partition in result.partitions] == [ErrorCode.NONE] * 500
