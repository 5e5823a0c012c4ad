"""`wirebroker topic …` against a broker."""

from __future__ import annotations

import pytest

from tests.support.protocol.raw_client import BlockingClient
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey


def fill(served, topic, count):
    client = BlockingClient(served.address)
    data = {"name": topic, "partition_data": [{"index": 0, "records": batch(*[b"v"] * count)}]}
    answer = client.ask(ApiKey.PRODUCE, 9, {"acks": -1, "timeout_ms": 9000, "topic_data": [data]})
    assert answer.responses[0].partition_responses[0].error_code == 0
    client.close()


def test_a_topic_is_made_listed_and_described(verbs):
    said = verbs.do("topic", "create", "made", "-p", "3", "-c", "retention.ms=1000")
    assert said.out == "made: created\n"
    listed = verbs.do("topic", "list")
    assert listed.lines[0].split() == ["NAME", "PARTITIONS", "REPLICAS"]
    assert ["made", "3", "1"] in listed.rows
    described = verbs.do("topic", "describe", "made").lines
    assert described[0].startswith("made  id ")
    assert described[1] == "  retention.ms=1000"
    titles = "PARTITION  LEADER  EPOCH  REPLICAS  ISR  START  END"
    assert described[2] == titles
    assert [line.split()[0] for line in described[3:]] == ["0", "1", "2"]


def test_several_topics_are_described_with_a_line_between(verbs):
    verbs.do("topic", "create", "one", "two")
    assert verbs.do("topic", "describe", "one", "two").lines[3] == ""


def test_what_json_says_is_what_there_is(verbs, served):
    verbs.do("topic", "create", "plain", "-p", "1")
    fill(served, "plain", 4)
    (found,) = verbs.json("topic", "describe", "plain")
    assert len(found["topic_id"]) == 22
    assert found["configs"] == {}
    assert found["partitions"] == [
        {
            "partition": 0,
            "leader": 1,
            "epoch": 0,
            "replicas": [1],
            "isr": [1],
            "start": 0,
            "end": 4,
        }
    ]


def test_a_list_can_be_narrowed(verbs):
    verbs.do("topic", "create", "narrow-a", "narrow-b")
    assert [each["name"] for each in verbs.json("topic", "list", "^narrow-.*b$")] == ["narrow-b"]
    assert verbs.run("topic", "list", "(").status == 2


def test_a_topic_that_is_there_is_a_mistake_unless_it_may_be(verbs):
    verbs.do("topic", "create", "twice")
    again = verbs.run("topic", "create", "twice")
    assert again.status == 1
    assert again.err.startswith("wirebroker: topic twice cannot be created: ")
    assert "TOPIC_ALREADY_EXISTS" in again.err
    assert verbs.do("topic", "create", "twice", "--if-not-exists").out == "twice: already exists\n"


def test_a_topic_gets_partitions_and_configs(verbs):
    verbs.do("topic", "create", "altered", "-c", "retention.ms=1000")
    verbs.do("topic", "alter", "altered", "-p", "2", "-c", "segment.ms=5000")
    verbs.do("topic", "alter", "altered", "--unset", "retention.ms")
    (found,) = verbs.json("topic", "describe", "altered")
    assert found["configs"] == {"segment.ms": "5000"}
    assert len(found["partitions"]) == 2
    fewer = verbs.run("topic", "alter", "altered", "-p", "1")
    assert fewer.status == 1
    assert "INVALID_PARTITIONS" in fewer.err
    assert verbs.run("topic", "alter", "altered").status == 2


def test_nothing_is_deleted_without_yes(verbs):
    verbs.do("topic", "create", "going")
    said = verbs.do("topic", "delete", "going")
    assert said.rows == [["going", "1"]]
    assert "add --yes" in said.err
    assert verbs.json("topic", "list", "^going$")
    assert verbs.do("topic", "delete", "going", "--yes").out == "going: deleted\n"
    assert not verbs.json("topic", "list", "^going$")


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(verbs):
    verbs.do("topic", "create", "customers")
    said = verbs.run("topic", "describe", "custommers")
    assert (said.status, said.out) == (1, "")
    assert said.err == "wirebroker: there is no topic custommers; did you mean customers?\n"
    other = verbs.run("topic", "delete", "zzz", "--yes")
    assert other.err == "wirebroker: there is no topic zzz\n"


@pytest.mark.parametrize(
    ("flags", "start"), [(["--before-offset", "3"], 3), (["--all"], 5), (["--before-time", "1"], 0)]
)
def test_the_oldest_records_are_trimmed(verbs, served, flags, start):
    name = f"trimmed{start}"
    verbs.do("topic", "create", name, "-p", "2")
    fill(served, name, 5)
    would = verbs.do("topic", "trim", name, *flags)
    assert would.rows == [["0", "0", str(start), "5", str(start)], ["1", "0", "0", "0", "0"]]
    assert verbs.json("topic", "describe", name)[0]["partitions"][0]["start"] == 0
    verbs.do("topic", "trim", name, *flags, "--yes", "-p", "0")
    assert verbs.json("topic", "describe", name)[0]["partitions"][0]["start"] == start


def test_trimming_wants_one_place_to_trim_to_and_partitions_that_are_there(verbs):
    verbs.do("topic", "create", "kept")
    assert verbs.run("topic", "trim", "kept").status == 2
    assert verbs.run("topic", "trim", "kept", "--all", "--before-offset", "1").status == 2
    assert verbs.run("topic", "trim", "kept", "--all", "-p", "x").status == 2
    said = verbs.run("topic", "trim", "kept", "--all", "-p", "1")
    assert said.err == "wirebroker: there is no partition 1: the topic has 1, from 0 on\n"


@pytest.mark.parametrize("verb", ["delete", "describe", "trim", "alter"])
def test_a_missing_topic_is_not_to_be_created_where_it_is_changed(verbs, verb):
    flags = {"trim": ["--all"], "alter": ["-p", "9"]}.get(verb, [])
    said = verbs.run("topic", verb, "zzzz", *flags)
    assert said == (1, "", "wirebroker: there is no topic zzzz\n")


def test_a_missing_topic_is_to_be_created_where_records_go(verbs):
    said = verbs.feed(b"a\n", "produce", "zzzz")
    assert said.err == (
        "wirebroker: there is no topic zzzz; `wirebroker topic create zzzz` creates it\n"
    )
