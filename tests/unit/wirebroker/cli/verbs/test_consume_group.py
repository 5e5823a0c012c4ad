"""`wirebroker consume --group` and `--isolation` against a broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager

import confluent_kafka
import pytest

from tests.support.tools.waiting import eventually


@pytest.fixture
def filled(verbs, request):
    """Create a topic with two partitions and values 0 to 4 in the first."""
    name = request.node.name.replace("_", "-")
    verbs.do("topic", "create", name, "-p", "2")
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name, "-p", "0")
    return name


@contextmanager
def running(verbs, *arguments):
    command = [sys.executable, "-m", "wirebroker", *arguments, "-b", verbs.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_group_continues_at_its_committed_offset(verbs, filled):
    arguments = ("consume", filled, "-g", filled, "--from-beginning")
    assert verbs.do(*arguments, "-n", "2").lines == ["0", "1"]
    assert verbs.do(*arguments, "-n", "2").lines == ["2", "3"]
    assert verbs.do(*arguments, "--exit").lines == ["4"]
    assert verbs.do(*arguments, "--exit").lines == []
    described = verbs.json("group", "describe", filled)[0]
    assert described["state"] == "Empty"
    assert [partition["committed"] for partition in described["partitions"]] == [5, 0]


def test_without_a_commit_consuming_begins_where_requested(verbs, filled):
    assert verbs.do("consume", filled, "-g", filled, "--exit").lines == []
    other = f"{filled}-other"
    assert verbs.do("consume", filled, "-g", other, "-o", "-2", "--exit").lines == ["3", "4"]


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_signal_commits_printed_records_and_leaves_the_group(verbs, number):
    name = f"signal-{number.name.lower()}"
    verbs.do("topic", "create", name)
    verbs.feed(b"a\nb\n", "produce", name)
    with running(verbs, "consume", name, "-g", name, "-o", "start") as process:
        assert [process.stdout.readline() for _ in range(2)] == [b"a\n", b"b\n"]
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (128 + number, b"")
    (row,) = verbs.json("group", "describe", name)[0]["partitions"]
    assert (row["committed"], row["lag"]) == (2, 0)


def test_group_members_share_partitions_with_another_client(verbs, filled):
    """With another member in the group, each has one partition; no record is lost or repeated."""
    with running(verbs, "consume", filled, "-g", filled, "-o", "start") as process:
        assert [process.stdout.readline() for _ in range(5)] == [b"%d\n" % n for n in range(5)]
        other = confluent_kafka.Consumer(
            {
                "bootstrap.servers": verbs.bootstrap,
                "group.id": filled,
                "auto.offset.reset": "earliest",
            }
        )
        other.subscribe([filled])
        eventually(lambda: other.poll(0.1) is None and len(other.assignment()) == 1)
        own_partitions = {partition.partition for partition in other.assignment()}
        verbs.feed(b"5\n", "produce", filled, "-p", f"{(set(range(2)) - own_partitions).pop()}")
        verbs.feed(b"6\n", "produce", filled, "-p", f"{own_partitions.pop()}")
        assert process.stdout.readline() == b"5\n"
        message = other.poll(30)
        assert message is not None
        assert message.value() == b"6"
        other.close()
        verbs.feed(b"7\n", "produce", filled)
        assert process.stdout.readline() == b"7\n"


def test_aborted_records_are_not_consumed(verbs, filled):
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "transactional.id": filled}
    )
    producer.init_transactions(30)
    for value, end in ((b"aborted", producer.abort_transaction), (b"done", None)):
        producer.begin_transaction()
        producer.produce(filled, value, partition=1)
        assert producer.flush(30) == 0
        (end or producer.commit_transaction)(30)
    arguments = ("consume", filled, "-o", "start", "-p", "1", "--exit")
    assert verbs.do(*arguments).lines == ["aborted", "done"]
    assert verbs.do(*arguments, "--isolation", "read_committed").lines == ["done"]
    producer.begin_transaction()
    producer.produce(filled, b"open", partition=1)
    assert producer.flush(30) == 0
    assert verbs.do(*arguments, "--isolation", "read_committed").lines == ["done"]
    producer.abort_transaction(30)


def test_invalid_arguments_are_refused(verbs):
    assert verbs.run("consume", "t", "-g", "g", "-p", "0").status == 2
    assert verbs.run("consume", "t", "--isolation", "x").status == 2
