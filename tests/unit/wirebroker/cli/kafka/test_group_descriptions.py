"""Parts of the tools for groups that no recorded output of Kafka shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cli.script_transcripts import our_scripts
from wirebroker.cli.kafka.groups.chosen_partitions import in_printed_order, listed_partitions
from wirebroker.cli.kafka.groups.group_selection import group_failures
from wirebroker.cli.kafka.groups.share_descriptions import members_of, offsets_of
from wirebroker.cli.kafka.groups.topology_text import topology_text
from wirebroker.client.groups.share_groups import DescribedShareGroup, ShareMember
from wirebroker.client.groups.share_offsets import SharedProgress
from wirebroker.client.topics.leaders import TopicPartition

SOURCE, PROCESSOR, SINK = 1, 2, 3
NOBODY = "127.0.0.1:1"
# What Kafka's TopologyDescriptionFormatter prints of the topology below.
TEXT = """\
Topologies:
   Sub-topology: 0
    Source: in (topics: [a, b])
      --> count, filter
    Processor: count (stores: [counts])
      --> out
      <-- in
    Processor: filter (stores: [])
      --> none
      <-- in
    Sink: out (topic: null)
      <-- count

   Sub-topology: 1 for global store (will not generate tasks)
    Source: all (topics: [rates])
      --> update
    Processor: update (stores: [rates])
      --> none
      <-- all

"""


def node(name: str, node_type: int, *successors: str, **fields: Any) -> SimpleNamespace:
    values: dict[str, Any] = {"source_topics": [], "sink_topic": None, "stores": [], **fields}
    return SimpleNamespace(name=name, node_type=node_type, successors=[*successors], **values)


def test_topology_is_printed_like_kafka_streams() -> None:
    nodes = [
        node("in", SOURCE, "filter", "count", source_topics=["b", "a"]),
        node("count", PROCESSOR, "out", stores=["counts"]),
        node("filter", PROCESSOR),
        node("out", SINK),
    ]
    store = SimpleNamespace(
        source=node("all", SOURCE, "update", source_topics=["rates"]),
        processor=node("update", PROCESSOR, stores=["rates"]),
    )
    topology = SimpleNamespace(
        subtopologies=[SimpleNamespace(subtopology_id="0", nodes=nodes)], global_stores=[store]
    )
    assert topology_text(topology) == TEXT


def test_partitions_are_printed_in_the_order_of_a_hash_map() -> None:
    places = [TopicPartition("st", 0), TopicPartition("st", 1)]
    assert in_printed_order(places) == places[::-1]


@pytest.mark.parametrize("text", ["t:", ":0", "t:0:1", "t:0,x", "t:-1"])
def test_malformed_partitions_are_refused(text: str) -> None:
    with pytest.raises(Exception, match="Invalid"):
        listed_partitions(text)


def test_copied_failures_are_printed_in_the_order_of_a_smaller_map() -> None:
    failures = {"missing": "1", "shared": "2"}
    lines = group_failures("share groups", [], failures, copied=2)
    assert [line.split("'")[1] for line in lines[2:]] == ["missing", "shared"]
    lines = group_failures("share groups", ["gone"], failures, end=".")
    assert [line.split("'")[1] for line in lines[2:4]] == ["shared", "missing"]
    assert lines[4:] == ["", "These share groups were deleted successfully: 'gone'."]


def test_share_group_is_printed_with_as_wide_columns_as_kafkas() -> None:
    progress = [
        SharedProgress(TopicPartition("t", 0), 5, 2, 1),
        SharedProgress(TopicPartition("u", 1), None, None),
    ]
    assert offsets_of("g", progress, verbose=True) == [
        "",
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG",
        "g               t               0          1             5             2",
        "g               u               1          -             -             -",
    ]
    assert offsets_of("g", [], verbose=False) == ["", "Share group 'g' has no offset information."]
    places = [TopicPartition("u", 0), TopicPartition("t", 10), TopicPartition("t", 9)]
    member = ShareMember("m", "c", "1.2.3.4", places, 7)
    group = DescribedShareGroup("g", "Stable", 7, "simple", [member], 7)
    assert members_of(group, verbose=True)[1:] == [
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS  MEMBER-EPOCH"
        "  ASSIGNMENT",
        "g               m               /1.2.3.4        c               3            7            "
        " t:9,10;u:0",
    ]


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("a.*", "is valid."),
        ("a(", "is invalid: missing closing )."),
        ("a[", "is invalid: missing closing ]."),
        ("*", "is invalid: missing argument to repetition operator."),
        ("a**", "is invalid: invalid nested repetition operator."),
        ("a{3000}", "is invalid: invalid repeat count."),
        ("[z-a]", "is invalid: invalid character class range."),
        (r"\y", "is invalid: invalid escape sequence."),
        ("(?<n", "is invalid: invalid named capture."),
    ],
)
def test_expressions_are_validated_like_kafka(
    expression: str, outcome: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = our_scripts(capfd)("kafka-consumer-groups", ["--validate-regex", expression])
    assert (answer.status, answer.out) == (0, f"The regular expression `{expression}` {outcome}\n")


@pytest.mark.parametrize(
    "command",
    [
        "kafka-share-groups",
        "kafka-share-groups --list --delete --group g",
        "kafka-share-groups --describe",
        "kafka-share-groups --describe --group g --all-groups",
        "kafka-share-groups --describe --group g --members --state",
        "kafka-share-groups --describe --group g --state Empty",
        "kafka-share-groups --list --members",
        "kafka-share-groups --list --verbose",
        "kafka-share-groups --list --group g",
        "kafka-share-groups --list --topic t",
        "kafka-share-groups --delete --group g --state",
        "kafka-share-groups --delete --group g --all-topics",
        "kafka-share-groups --delete-offsets --group g",
        "kafka-share-groups --delete-offsets --topic t",
        "kafka-share-groups --reset-offsets --group g --group h --topic t --to-latest --dry-run",
        "kafka-share-groups --reset-offsets --group g --topic t --to-latest",
        "kafka-share-groups --reset-offsets --group g --to-latest --dry-run",
        "kafka-share-groups --reset-offsets --group g --topic t --dry-run",
        "kafka-share-groups --reset-offsets --group g --topic t --all-topics --to-latest --execute",
        "kafka-streams-groups",
        "kafka-streams-groups --describe",
        "kafka-streams-groups --describe --group g --all-groups",
        "kafka-streams-groups --describe --group g --topology --state",
        "kafka-streams-groups --describe --group g --state Stable",
        "kafka-streams-groups --list --topology",
        "kafka-streams-groups --list --group g",
        "kafka-streams-groups --delete --group g --state",
        "kafka-streams-groups --delete --group g --execute",
        "kafka-streams-groups --delete --group g --all-input-topics",
        "kafka-streams-groups --describe --group g --input-topic t",
        "kafka-streams-groups --delete-offsets --group g",
        "kafka-streams-groups --delete-offsets --group g --group h --input-topic t",
        "kafka-streams-groups --reset-offsets --group g --to-latest --dry-run",
        "kafka-streams-groups --reset-offsets --group g --input-topic t --to-latest",
        "kafka-streams-groups --reset-offsets --group g --all-input-topics --dry-run",
        "kafka-streams-groups --describe --group g --delete-all-internal-topics",
        "kafka-streams-groups --delete --group g --delete-internal-topic t",
        "kafka-console-share-consumer",
        "kafka-console-share-consumer --topic t --accept",
        "kafka-console-share-consumer --topic t --reject --release",
        "kafka-console-share-consumer --topic t --formatter no.Class",
        "kafka-console-share-consumer --topic t --group g --command-property group.id=h",
        "kafka-console-share-consumer --topic t --property a=b --formatter-property a=b",
    ],
)
def test_wrong_arguments_end_with_status_1_before_the_cluster_is_used(
    command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    script, *arguments = command.split()
    answer = our_scripts(capfd)(script, [*arguments, "--bootstrap-server", NOBODY])
    assert (answer.status, answer.out) == (1, "")
    assert f"(see wirebroker {script} --help)" in answer.err
