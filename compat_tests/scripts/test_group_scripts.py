"""Our scripts for groups and Kafka's print the same of groups of each kind, with one broker."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from compat_tests.support.live_groups import (
    SETTINGS,
    consumer_member,
    share_member,
    streams_member,
)
from compat_tests.support.newer_groups import join_classic_group
from compat_tests.support.raw_requests import Requests, batch, record
from tests.support.brokers.brokers import HOST, make_broker
from tests.support.cli.script_transcripts import our_scripts
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker
    from tests.support.cli.script_transcripts import Answer

    Run = Callable[..., Answer]

pytestmark = pytest.mark.java

EARLIEST: Final = "--alter --entity-type groups --add-config share.auto.offset.reset=earliest"
# What both scripts print of the groups `live`, without a change.
SHOWN: Final = {
    "kafka-share-groups": [
        "--list",
        "--list --state",
        "--list --state stable,EMPTY",
        "--list --state Dead",
        "--list --state Nonsense",
        "--list --group shared",
        "--list --describe --group shared",
        "--describe",
        "--describe --group shared",
        "--describe --group shared --offsets --verbose",
        "--describe --group shared --members",
        "--describe --group shared --members --verbose",
        "--describe --group shared --state",
        "--describe --group shared --state --verbose",
        "--describe --group shared --state Stable",
        "--describe --group shared --members --state",
        "--describe --group shared --group missing",
        "--describe --group application",
        "--describe --all-groups",
        "--describe --all-groups --members",
        "--delete --group shared --group missing",
        "--delete --group shared --all-groups",
        "--delete --group shared --topic read",
        "--delete",
        "--delete-offsets --group shared --topic read",
        "--delete-offsets --group missing --topic read",
        "--delete-offsets --group shared",
        "--reset-offsets --group missing --topic read --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read:1 --topic read:0 --to-latest --dry-run",
        "--reset-offsets --group missing --topic read --to-offset 1 --dry-run --export",
        "--reset-offsets --group missing --topic read --to-current --dry-run",
        "--reset-offsets --group missing --topic read --to-datetime 2000-01-01T00:00:00.000"
        " --dry-run",
        "--reset-offsets --group missing --topic read --to-datetime 2100-01-01T00:00:00.000"
        " --dry-run",
        "--reset-offsets --group missing --all-topics --to-earliest --dry-run",
        "--reset-offsets --group missing --from-file DIR/plan.csv --dry-run",
        "--reset-offsets --group missing --topic read:7 --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read:x --to-earliest --dry-run",
        "--reset-offsets --group missing --topic nowhere --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read --to-earliest",
        "--reset-offsets --group missing --topic read --dry-run",
        "--reset-offsets --group missing --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read --to-earliest --to-latest --dry-run",
        "--reset-offsets --group missing --topic read --to-earliest --dry-run --execute",
    ],
    "kafka-streams-groups": [
        "--list",
        "--list --state",
        "--list --state stable,NotReady",
        "--list --state Nonsense",
        "--list --members",
        "--describe --group application",
        "--describe --group application --offsets --verbose",
        "--describe --group application --members",
        "--describe --group application --members --verbose",
        "--describe --group application --state",
        "--describe --group application --state --verbose",
        "--describe --group application --topology",
        "--describe --group application --group missing",
        "--describe --group missing --state",
        "--describe --group shared",
        "--describe --all-groups --members",
        "--delete --group application --group missing",
        "--delete --group application --delete-all-internal-topics",
        "--delete-offsets --group application --input-topic read",
        "--delete-offsets --group application --input-topic read:0 --input-topic nowhere",
        "--delete-offsets --group application --all-input-topics",
        "--delete-offsets --group missing --input-topic read",
        "--delete-offsets --group missing --all-input-topics",
        "--reset-offsets --group application --all-input-topics --to-earliest --dry-run",
        "--reset-offsets --group missing --input-topic read --to-earliest --dry-run",
        "--reset-offsets --group missing --all-input-topics --to-earliest --execute",
    ],
    "kafka-consumer-groups": [
        "--list",
        "--list --state --type",
        "--list --type consumer",
        "--describe --group consumers",
        "--describe --group consumers --verbose",
        "--describe --group consumers --members",
        "--describe --group consumers --members --verbose",
        "--describe --group consumers --state",
        "--describe --group consumers --state --verbose",
        "--describe --group mixed --members --verbose",
        "--describe --group mixed --offsets",
        "--describe --group consumers --group missing",
        "--describe --group shared",
        "--describe --all-groups --state",
        "--delete --group consumers --group missing",
        "--delete-offsets --group consumers --topic read",
        "--delete-offsets --group missing --topic read:0 --topic nowhere",
        "--reset-offsets --group consumers --topic read --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read --to-earliest --dry-run --export",
        "--reset-offsets --group missing --topic read:7 --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read:x --to-earliest --dry-run",
        "--reset-offsets --group missing --topic nowhere --to-earliest --dry-run",
        "--reset-offsets --group missing --topic read --shift-by 1 --dry-run",
        "--reset-offsets --group missing --topic read --to-datetime 2100-01-01T00:00:00.000"
        " --dry-run",
        "--validate-regex a.*",
        "--validate-regex a(",
        "--validate-regex [z-a]",
        "--validate-regex a**",
    ],
    "kafka-groups": [
        "--list",
        "--list --consumer",
        "--list --share",
        "--list --streams",
        "--list --group-type streams",
        "--list --protocol share",
    ],
    "kafka-configs": [
        "--describe --entity-type groups",
        "--describe --entity-type groups --entity-name shared",
        "--describe --group shared --all",
        "--describe --group missing",
        "--alter --group shared --add-config share.record.lock.duration.ms=1",
    ],
}
# Where Kafka's own error handling makes a difference.
_ENDED: Final = "command failed due to null"


@pytest.fixture(scope="module")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    folder = tmp_path_factory.mktemp("groups")
    with make_broker(broker_kind, folder, SETTINGS | settings) as running:
        yield running


@pytest.fixture(scope="module")
def requests(broker: Broker) -> Iterator[Requests]:
    with contextlib.closing(Requests((HOST, broker.port))) as requests:
        requests.create("read", 2)
        requests.append("read", batch(*(record(number, b"k", b"v") for number in range(3))))
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        yield requests


@pytest.fixture(scope="module")
def theirs() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.fixture(scope="module")
def live(requests: Requests, broker: Broker, theirs: KafkaScripts) -> None:
    """Make groups of each kind with two members, whose assignments are settled."""
    earliest = [*EARLIEST.split(), "--entity-name", "shared"]
    connection = ["--bootstrap-server", broker.bootstrap]
    assert theirs.run("kafka-configs", [*connection, *earliest]).status == 0
    join_classic_group(requests, "mixed", "read", 2, session_ms=120_000)
    instance = {"instance_id": "static"}
    members = [
        *(share_member(requests, "shared", name, ["read"]) for name in ("first", "second")),
        *(streams_member(requests, "application", name, "read") for name in ("first", "second")),
        consumer_member(requests, "consumers", "first", ["read"]),
        consumer_member(requests, "consumers", "second", ["read"], **instance),
        consumer_member(requests, "mixed", "newer", ["read"]),
    ]
    for _ in range(3):
        for member in members:
            member.beat()
    # Partitions of a share group are assigned when their state is initialized.
    for member in members[:-1]:
        member.wait_for_assignment()


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Run:
    return our_scripts(capfd)


def compared(expected: Answer, result: Answer) -> tuple[object, object]:
    """Return what must be equal; a stopped tool of Kafka says that it ended in this process."""
    lines = [line for line in expected.out.splitlines() if _ENDED not in line]
    if len(lines) < len(expected.out.splitlines()):
        kept = [line for line in lines if line]
        return (expected.status, kept), (result.status, result.out.splitlines())
    return (expected.status, expected.out), (result.status, result.out)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("script", SHOWN)
def test_scripts_print_live_groups_like_kafka(
    script: str, broker: Broker, theirs: KafkaScripts, ours: Run, tmp_path: Path
) -> None:
    (tmp_path / "plan.csv").write_text("read,0,1\nread,1,0\n")
    for words in SHOWN[script]:
        arguments = words.replace("DIR", str(tmp_path)).split()
        arguments += ["--bootstrap-server", broker.bootstrap]
        expected = theirs.run(script, arguments)
        wanted, shown = compared(expected, ours(script, arguments))
        assert shown == wanted, (script, words, expected.err)


@pytest.mark.usefixtures("live")
def test_verbs_for_groups_show_groups_of_all_kinds(broker: Broker, ours: Run) -> None:
    names = ("consumers", "shared", "application")
    arguments = ("-b", broker.bootstrap, "--output", "json")
    shown = json.loads(ours("group", ["describe", *names, *arguments]).out)
    assert [group["kind"] for group in shown] == ["consumer", "share", "streams"]
    for group in shown:
        assert (group["state"], len(group["members"])) == ("Stable", 2)
        read = [row["partition"] for row in group["partitions"] if row["topic"] == "read"]
        assert read == [0, 1]
    refused = ours("group", ["delete", *names, "--yes", *arguments])
    assert (refused.status, "NON_EMPTY_GROUP" in refused.err) == (1, True)


def test_console_consumer_reports_its_end_to_system_tests_like_kafka(
    requests: Requests, broker: Broker, theirs: KafkaScripts, ours: Run
) -> None:
    pair = Pair("reader", broker, theirs.run, ours)
    requests.create("ended", 1)
    requests.append("ended", batch(record(0, b"k", b"v")))
    read = "kafka-console-consumer --topic ended --from-beginning --max-messages 1"
    pair.run(f"{read} --enable-systest-events")
    assert pair.count == 1


def test_commands_on_share_groups_have_the_effects_of_kafkas(
    requests: Requests, broker: Broker, theirs: KafkaScripts, ours: Run
) -> None:
    pair = Pair("share", broker, theirs.run, ours)
    for topic in ("lines-a", "lines-b"):
        requests.create(topic, 1)
        requests.append(topic, batch(*(record(number, b"k", b"v") for number in range(4))))
    read = "kafka-console-share-consumer --group GROUP --topic lines-X --timeout-ms 20000"
    printed = " ".join(
        f"--formatter-property print.{part}=true"
        for part in ("delivery", "offset", "partition", "epoch", "key")
    )
    # Without it Kafka sometimes begins at the end, whatever the config says.
    created = "--topic lines-X --to-earliest --execute"
    pair.run(f"kafka-share-groups --reset-offsets --group GROUP {created}")
    pair.run(f"{read} --max-messages 2 {printed} --enable-systest-events")
    pair.run(f"{read} --max-messages 1 --release {printed}")
    pair.run(f"{read} --max-messages 1 --reject {printed}")
    pair.run("kafka-share-groups --describe --group GROUP --verbose")
    pair.run(
        "kafka-share-groups --reset-offsets --group GROUP --all-topics --to-earliest --execute"
    )
    pair.run("kafka-share-groups --describe --group GROUP --state --verbose")
    integers = "org.apache.kafka.common.serialization.IntegerDeserializer"
    pair.run(f"{read} --value-deserializer {integers}")
    pair.run(f"{read} --value-deserializer {integers} --reject-message-on-error --max-messages 4")
    pair.run("kafka-share-groups --describe --group GROUP")
    pair.run("kafka-share-groups --describe --group GROUP --members")
    pair.run("kafka-share-groups --delete-offsets --group GROUP --topic lines-X --topic nowhere")
    pair.run("kafka-share-groups --delete-offsets --group GROUP --topic lines-X")
    pair.run("kafka-share-groups --describe --group GROUP")
    pair.run("kafka-share-groups --delete --group GROUP")
    pair.run("kafka-share-groups --describe --group GROUP")
    pair.run("kafka-console-share-consumer --topic lines-X --max-messages 0")
    pair.run("kafka-console-share-consumer --topic lines-X --reject --release")
    pair.run("kafka-console-share-consumer --topic lines-X --group GROUP --formatter no.Class")
    assert pair.count == 19


def test_commands_on_streams_groups_have_the_effects_of_kafkas(
    requests: Requests, broker: Broker, theirs: KafkaScripts, ours: Run
) -> None:
    pair = Pair("group", broker, theirs.run, ours)
    tool = "kafka-streams-groups"
    for group in ("group-a", "group-b"):
        member = streams_member(requests, group, "only", "read")
        member.beat()
        member.leave()
        partition = {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""}
        topics = [{"name": "read", "partitions": [partition]}]
        requests.ask(ApiKey.OFFSET_COMMIT, 8, {"group_id": group, "topics": topics})
    pair.run(f"{tool} --describe --group GROUP --state --verbose")
    pair.run(f"{tool} --describe --group GROUP")
    reset = f"{tool} --reset-offsets --group GROUP"
    pair.run(f"{reset} --all-input-topics --to-earliest --dry-run")
    pair.run(f"{reset} --all-input-topics --shift-by 1 --dry-run")
    pair.run(f"{reset} --all-input-topics --to-current --dry-run --export")
    pair.run(f"{reset} --input-topic read:0 --to-offset 1 --execute")
    pair.run(f"{reset} --input-topic read:1 --to-latest --execute")
    pair.run(
        f"{reset} --all-input-topics --by-duration PT1H --execute"
        " --delete-internal-topic GROUP-store-changelog"
    )
    pair.run(f"{tool} --delete-offsets --group GROUP --input-topic read:0")
    pair.run(f"{tool} --delete-offsets --group GROUP --all-input-topics")
    pair.run(f"{tool} --delete --group GROUP --delete-all-internal-topics")
    pair.run(f"{tool} --delete --group GROUP")
    assert pair.count == 12
    topics = requests.ask(ApiKey.METADATA, 12, {"topics": None}).topics
    assert not [topic.name for topic in topics if topic.name.startswith("group-")]


class Pair:
    """Runs each command with Kafka's script on one group and with ours on another like it."""

    def __init__(self, name: str, broker: Broker, theirs: Run, ours: Run) -> None:
        self.count = 0
        self._name = name
        self._bootstrap = broker.bootstrap
        self._runs = (theirs, ours)

    def run(self, command: str) -> None:
        results: list[Any] = []
        for letter, run in zip("ab", self._runs, strict=True):
            words = (
                command.replace("GROUP", f"{self._name}-{letter}")
                .replace("-X", f"-{letter}")
                .split()
            )
            answer = run(words[0], [*words[1:], "--bootstrap-server", self._bootstrap])
            text = answer.out.replace(f"-{letter}", "-x")
            results.append((answer.status, [line for line in text.split("\n") if _kept(line)]))
        assert results[1] == results[0], command
        self.count += 1


def _kept(line: str) -> bool:
    # Kafka's scripts warn on standard output.
    return " is deprecated and will be removed" not in line and _ENDED not in line
