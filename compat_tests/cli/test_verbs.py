"""The verbs (wirebroker/cli/verbs) against Apache Kafka and wirebroker, with the same tests.

tests/unit/wirebroker/cli/verbs checks their output in detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from compat_tests.conftest import new_topic_name
from tests.support.brokers.brokers import make_broker
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    with make_broker(request.param, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def verbs(asked: Broker, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(asked.bootstrap, capsys)


@pytest.fixture
def name() -> str:
    return new_topic_name()


def partition_counts(verbs: Verbs) -> dict[str, int]:
    return {topic["name"]: topic["partitions"] for topic in verbs.json("topic", "list")}


def configs(verbs: Verbs, *resource: str) -> dict[str, str]:
    return {config["name"]: config["value"] for config in verbs.json("config", "list", *resource)}


def test_topics_are_created_altered_and_deleted(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name, "-p", "2", "-c", "retention.ms=86400000")
    assert partition_counts(verbs)[name] == 2
    verbs.do("topic", "alter", name, "-p", "3", "-c", "segment.ms=5000", "--unset", "retention.ms")
    eventually(lambda: configs(verbs, "topic", name) == {"segment.ms": "5000"})
    (described,) = verbs.json("topic", "describe", name)
    assert described["configs"] == {"segment.ms": "5000"}
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {(partition["start"], partition["end"]) for partition in described["partitions"]} == {
        (0, 0)
    }
    assert "TOPIC_ALREADY_EXISTS" in verbs.run("topic", "create", name).err
    assert "INVALID_PARTITIONS" in verbs.run("topic", "alter", name, "-p", "1").err
    assert f"did you mean {name}?" in verbs.run("topic", "describe", f"{name}x").err
    verbs.do("topic", "delete", name, "--yes")
    assert name not in partition_counts(verbs)


def test_configs_are_set_and_unset(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name)
    verbs.do("config", "set", "topic", name, "retention.ms=1000", "segment.ms=5000")
    verbs.do("config", "unset", "topic", name, "segment.ms")
    eventually(lambda: configs(verbs, "topic", name) == {"retention.ms": "1000"})
    assert "INVALID_CONFIG" in verbs.run("config", "set", "topic", name, "retention.ms=x").err
    verbs.do("config", "set", "broker", "all", "log.retention.ms=7200000")
    eventually(lambda: configs(verbs, "broker", "all").get("log.retention.ms") == "7200000")
    verbs.do("config", "unset", "broker", "all", "log.retention.ms")
    assert "log.dirs" in configs(verbs, "broker", "1")


def test_records_are_produced_consumed_and_trimmed(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name, "-p", "3", "-c", "max.message.bytes=2000")
    lines = b"".join(b"k%d=v%d\n" % (number, number) for number in range(1000))
    arguments = ("produce", name, "--key-separator", "=", "-H", "a=b", "-z", "gzip")
    assert verbs.feed(lines, *arguments).status == 1  # batches of half a megabyte
    verbs.do("config", "unset", "topic", name, "max.message.bytes")
    eventually(lambda: verbs.feed(lines, *arguments).status == 0)
    consumed = verbs.do("consume", name, "--from-beginning", "-e", "-f", "%k=%s %h\\n")
    assert sorted(consumed.lines) == sorted(f"{line.decode()} a=b" for line in lines.splitlines())
    assert len(verbs.do("consume", name, "-o", "-5", "-n", "10").lines) == 10
    ends = [
        partition["end"] for partition in verbs.json("topic", "describe", name)[0]["partitions"]
    ]
    verbs.do("topic", "trim", name, "--all", "-p", "0,1", "--yes")
    starts = [
        partition["start"] for partition in verbs.json("topic", "describe", name)[0]["partitions"]
    ]
    assert starts == [*ends[:2], 0]
    assert len(verbs.do("consume", name, "-o", "0", "-e").lines) == ends[2]


def test_first_record_creates_topic(verbs: Verbs, name: str) -> None:
    assert verbs.feed(b"hello\n", "produce", name).status == 0
    assert verbs.do("consume", name, "--from-time", "5m", "-n", "1").lines == ["hello"]


def test_keys_go_to_same_partitions_as_with_librdkafka(verbs: Verbs, name: str) -> None:
    """Murmur2_random of librdkafka equals Java's partitioner."""
    verbs.do("topic", "create", name, "-p", "7")
    keys = [f"key-{number}" * (number % 5) for number in range(100)]
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "partitioner": "murmur2_random"}
    )
    for key in keys:
        producer.produce(name, key=key, value="theirs")
    assert producer.flush(30) == 0
    verbs.feed("".join(f"{key}=ours\n" for key in keys).encode(), *_keyed(name))
    lines = verbs.do("consume", name, "-o", "start", "-e", "-f", "%p %k %s\\n").lines
    librdkafka_keys = sorted(
        line.removesuffix(" theirs") for line in lines if line.endswith(" theirs")
    )
    wirebroker_keys = sorted(line.removesuffix(" ours") for line in lines if line.endswith(" ours"))
    assert len(wirebroker_keys) == len(keys)
    assert wirebroker_keys == librdkafka_keys


def _keyed(name: str) -> tuple[str, ...]:
    return ("produce", name, "--key-separator", "=")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_described_seeked_and_deleted(verbs: Verbs, name: str, protocol: str) -> None:
    verbs.do("topic", "create", name)
    assert verbs.feed(b"0\n1\n2\n", "produce", name).status == 0
    settings = {"group.id": name, "client.id": "reader", "group.protocol": protocol}
    settings |= {"bootstrap.servers": verbs.bootstrap, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([name])
    assert consumer.poll(30) is not None
    consumer.commit(asynchronous=False)
    (group_description,) = verbs.json("group", "describe", name)
    assert group_description["state"] == "Stable"
    assert [member["client_id"] for member in group_description["members"]] == ["reader"]
    assert [partition["lag"] for partition in group_description["partitions"]] == [2]
    assert "stop its consumers" in verbs.run("group", "delete", name, "--yes").err
    assert verbs.run("group", "seek", name, "--to", "start", "--yes").status == 1
    consumer.close()
    verbs.do("group", "seek", name, "--to", "end", "--yes")
    assert [partition["lag"] for partition in verbs.json("group", "lag", name)] == [0]
    assert name in [group["name"] for group in verbs.json("group", "list")]
    verbs.do("group", "delete", name, "--yes")
    assert name not in [group["name"] for group in verbs.json("group", "list")]
    assert verbs.run("group", "describe", name).status == 1


def test_cluster_lists_its_brokers(verbs: Verbs) -> None:
    cluster = verbs.json("cluster")
    assert [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]] == [
        verbs.bootstrap
    ]


def test_quorum_shows_its_leader(verbs: Verbs) -> None:
    quorum = verbs.json("quorum")
    assert quorum["leader_id"] == 1
    leader = quorum["replicas"][0]
    assert (leader["role"], leader["lag"]) == ("leader", 0)


def test_open_transaction_is_listed_and_described(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "transactional.id": name}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"value", partition=0)
    assert producer.flush(30) == 0
    listed = verbs.json("transaction", "list", "--state", "Ongoing")
    assert [transaction["transactional_id"] for transaction in listed] == [name]
    assert verbs.json("transaction", "describe", name)["partitions"] == [f"{name}-0"]
    producer.abort_transaction(30)
    assert (
        "there is no such transactional id" in verbs.run("transaction", "describe", f"{name}x").err
    )
