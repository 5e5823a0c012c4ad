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
    return {each["name"]: each["partitions"] for each in verbs.json("topic", "list")}


def configs(verbs: Verbs, *of: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in verbs.json("config", "list", *of)}


def test_topics_come_change_and_go(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name, "-p", "2", "-c", "retention.ms=86400000")
    assert partition_counts(verbs)[name] == 2
    verbs.do("topic", "alter", name, "-p", "3", "-c", "segment.ms=5000", "--unset", "retention.ms")
    eventually(lambda: configs(verbs, "topic", name) == {"segment.ms": "5000"})
    (described,) = verbs.json("topic", "describe", name)
    assert described["configs"] == {"segment.ms": "5000"}
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert {(each["start"], each["end"]) for each in described["partitions"]} == {(0, 0)}
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


def test_records_go_there_and_back(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name, "-p", "3", "-c", "max.message.bytes=2000")
    lines = b"".join(b"k%d=v%d\n" % (each, each) for each in range(1000))
    arguments = ("produce", name, "--key-separator", "=", "-H", "a=b", "-z", "gzip")
    assert verbs.feed(lines, *arguments).status == 1  # batches of half a megabyte
    verbs.do("config", "unset", "topic", name, "max.message.bytes")
    eventually(lambda: verbs.feed(lines, *arguments).status == 0)
    said = verbs.do("consume", name, "--from-beginning", "-e", "-f", "%k=%s %h\\n")
    assert sorted(said.lines) == sorted(f"{each.decode()} a=b" for each in lines.splitlines())
    assert len(verbs.do("consume", name, "-o", "-5", "-n", "10").lines) == 10
    ends = [each["end"] for each in verbs.json("topic", "describe", name)[0]["partitions"]]
    verbs.do("topic", "trim", name, "--all", "-p", "0,1", "--yes")
    starts = [each["start"] for each in verbs.json("topic", "describe", name)[0]["partitions"]]
    assert starts == [*ends[:2], 0]
    assert len(verbs.do("consume", name, "-o", "0", "-e").lines) == ends[2]


def test_a_topic_is_made_by_the_first_record(verbs: Verbs, name: str) -> None:
    assert verbs.feed(b"hello\n", "produce", name).status == 0
    assert verbs.do("consume", name, "--from-time", "5m", "-n", "1").lines == ["hello"]


def test_a_key_goes_where_other_producers_send_it(verbs: Verbs, name: str) -> None:
    """Murmur2_random of librdkafka equals Java's partitioner."""
    verbs.do("topic", "create", name, "-p", "7")
    keys = [f"key-{each}" * (each % 5) for each in range(100)]
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "partitioner": "murmur2_random"}
    )
    for key in keys:
        producer.produce(name, key=key, value="theirs")
    assert producer.flush(30) == 0
    verbs.feed("".join(f"{key}=ours\n" for key in keys).encode(), *_keyed(name))
    found = verbs.do("consume", name, "-o", "start", "-e", "-f", "%p %k %s\\n").lines
    theirs = sorted(each.removesuffix(" theirs") for each in found if each.endswith(" theirs"))
    ours = sorted(each.removesuffix(" ours") for each in found if each.endswith(" ours"))
    assert len(ours) == len(keys)
    assert ours == theirs


def _keyed(name: str) -> tuple[str, ...]:
    return ("produce", name, "--key-separator", "=")


def test_groups_are_shown_moved_and_deleted(verbs: Verbs, name: str) -> None:
    check_a_groups_life(verbs, name, "classic")


@pytest.mark.parametrize("asked", [pytest.param("apache", marks=pytest.mark.java)], indirect=True)
def test_so_are_groups_of_the_new_protocol(verbs: Verbs, name: str) -> None:
    """KIP-848, which wirebroker does not support yet."""
    check_a_groups_life(verbs, name, "consumer")


def check_a_groups_life(verbs: Verbs, name: str, protocol: str) -> None:
    verbs.do("topic", "create", name)
    assert verbs.feed(b"0\n1\n2\n", "produce", name).status == 0
    settings = {"group.id": name, "client.id": "reader", "group.protocol": protocol}
    settings |= {"bootstrap.servers": verbs.bootstrap, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([name])
    assert consumer.poll(30) is not None
    consumer.commit(asynchronous=False)
    (found,) = verbs.json("group", "describe", name)
    assert found["state"] == "Stable"
    assert [each["client_id"] for each in found["members"]] == ["reader"]
    assert [each["lag"] for each in found["partitions"]] == [2]
    assert "stop its consumers" in verbs.run("group", "delete", name, "--yes").err
    assert verbs.run("group", "seek", name, "--to", "start", "--yes").status == 1
    consumer.close()
    verbs.do("group", "seek", name, "--to", "end", "--yes")
    assert [each["lag"] for each in verbs.json("group", "lag", name)] == [0]
    assert name in [each["name"] for each in verbs.json("group", "list")]
    verbs.do("group", "delete", name, "--yes")
    assert name not in [each["name"] for each in verbs.json("group", "list")]
    assert verbs.run("group", "describe", name).status == 1


def test_a_cluster_is_its_brokers(verbs: Verbs) -> None:
    found = verbs.json("cluster")
    assert [f"{each['host']}:{each['port']}" for each in found["brokers"]] == [verbs.bootstrap]


def test_the_quorum_has_a_leader(verbs: Verbs) -> None:
    found = verbs.json("quorum")
    assert found["leader_id"] == 1
    leader = found["replicas"][0]
    assert (leader["role"], leader["lag"]) == ("leader", 0)


def test_an_open_transaction_is_seen(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "transactional.id": name}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"value", partition=0)
    assert producer.flush(30) == 0
    listed = verbs.json("transaction", "list", "--state", "Ongoing")
    assert [each["transactional_id"] for each in listed] == [name]
    assert verbs.json("transaction", "describe", name)["partitions"] == [f"{name}-0"]
    producer.abort_transaction(30)
    assert "there is none of that id" in verbs.run("transaction", "describe", f"{name}x").err
