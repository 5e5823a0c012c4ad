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


def test_topic_is_created_listed_and_described(verbs):
    result = verbs.do("topic", "create", "made", "-p", "3", "-c", "retention.ms=1000")
    assert result.out == "made: created\n"
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


def test_json_output_describes_the_topic(verbs, served):
    verbs.do("topic", "create", "plain", "-p", "1")
    fill(served, "plain", 4)
    (topic,) = verbs.json("topic", "describe", "plain")
    assert len(topic["topic_id"]) == 22
    assert topic["configs"] == {}
    assert topic["partitions"] == [
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


def test_list_can_be_filtered_by_a_pattern(verbs):
    verbs.do("topic", "create", "narrow-a", "narrow-b")
    assert [topic["name"] for topic in verbs.json("topic", "list", "^narrow-.*b$")] == ["narrow-b"]
    assert verbs.run("topic", "list", "(").status == 2


def test_existing_topic_is_an_error_unless_allowed(verbs):
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
    (topic,) = verbs.json("topic", "describe", "altered")
    assert topic["configs"] == {"segment.ms": "5000"}
    assert len(topic["partitions"]) == 2
    fewer = verbs.run("topic", "alter", "altered", "-p", "1")
    assert fewer.status == 1
    assert "INVALID_PARTITIONS" in fewer.err
    assert verbs.run("topic", "alter", "altered").status == 2


def test_nothing_is_deleted_without_yes(verbs):
    verbs.do("topic", "create", "going")
    result = verbs.do("topic", "delete", "going")
    assert result.rows == [["going", "1"]]
    assert "add --yes" in result.err
    assert verbs.json("topic", "list", "^going$")
    assert verbs.do("topic", "delete", "going", "--yes").out == "going: deleted\n"
    assert not verbs.json("topic", "list", "^going$")


def test_mistyped_name_gets_a_suggestion(verbs):
    verbs.do("topic", "create", "customers")
    result = verbs.run("topic", "describe", "custommers")
    assert (result.status, result.out) == (1, "")
    assert result.err == "wirebroker: there is no topic custommers; did you mean customers?\n"
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


def test_trim_needs_one_target_and_existing_partitions(verbs):
    verbs.do("topic", "create", "kept")
    assert verbs.run("topic", "trim", "kept").status == 2
    assert verbs.run("topic", "trim", "kept", "--all", "--before-offset", "1").status == 2
    assert verbs.run("topic", "trim", "kept", "--all", "-p", "x").status == 2
    result = verbs.run("topic", "trim", "kept", "--all", "-p", "1")
    assert result.err == "wirebroker: there is no partition 1: the topic has 1, from 0 on\n"


@pytest.mark.parametrize("verb", ["delete", "describe", "trim", "alter"])
def test_changing_a_missing_topic_suggests_no_creation(verbs, verb):
    flags = {"trim": ["--all"], "alter": ["-p", "9"]}.get(verb, [])
    result = verbs.run("topic", verb, "zzzz", *flags)
    assert result == (1, "", "wirebroker: there is no topic zzzz\n")


def test_producing_to_a_missing_topic_suggests_creation(verbs):
    result = verbs.feed(b"a\n", "produce", "zzzz")
    assert result.err == (
        "wirebroker: there is no topic zzzz; `wirebroker topic create zzzz` creates it\n"
    )


# --- copy


@pytest.fixture
def copied(verbs, request):
    """Create a topic with six records in two partitions, and an empty one of four."""
    source = "".join(letter for letter in request.node.name if letter.isalnum())
    verbs.do("topic", "create", source, "-p", "2")
    verbs.do("topic", "create", f"{source}-copy", "-p", "4")
    for partition in ("0", "1"):
        lines = f"a:{partition}0\nb:{partition}1\nc:{partition}2\n".encode()
        verbs.feed(lines, "produce", source, "--key-separator", ":", "-p", partition)
    return source, f"{source}-copy"


def values_of(verbs, topic):
    return sorted(verbs.do("consume", topic, "-o", "start", "-e", "-f", r"%p:%k:%s\n").lines)


def test_records_are_copied_only_with_yes(verbs, copied):
    preview = verbs.do("topic", "copy", *copied)
    assert preview.rows == [["0", "0", "3"], ["1", "0", "3"]]
    assert "nothing is changed" in preview.err
    assert values_of(verbs, copied[1]) == []
    assert verbs.do("topic", "copy", *copied, "--yes").out == (
        f"6 records copied from {copied[0]} to {copied[1]}\n"
    )
    copies = [line.partition(":")[2] for line in values_of(verbs, copied[1])]
    assert sorted(copies) == ["a:00", "a:10", "b:01", "b:11", "c:02", "c:12"]


@pytest.mark.parametrize(
    ("flags", "copies"),
    [
        (("--from-offset", "1", "--until-offset", "2"), ["0:b:01", "1:b:11"]),
        (("-p", "1", "-n", "2"), ["1:a:10", "1:b:11"]),
        (("--from-time", "1h", "--until-time", "1h"), []),
        (("--from-offset", "9", "-z", "gzip"), []),
    ],
)
def test_a_range_is_copied_to_the_same_partitions(verbs, copied, flags, copies):
    result = verbs.json("topic", "copy", *copied, *flags, "--keep-partitions", "--yes")
    assert result["copied"] == len(copies)
    assert values_of(verbs, copied[1]) == copies


def test_copies_that_cannot_be_made_are_refused(verbs, copied):
    source, target = copied
    for arguments, text in (
        ((source, source), "cannot be copied to itself"),
        ((source, "none"), "there is no topic none"),
        ((source, target, "-p", "5"), "there is no partition 5"),
    ):
        result = verbs.run("topic", "copy", *arguments, "--yes")
        assert result.status == 1
        assert text in result.err
    both = ("--from-offset", "1", "--from-time", "1h")
    assert verbs.run("topic", "copy", source, target, *both).status == 2
