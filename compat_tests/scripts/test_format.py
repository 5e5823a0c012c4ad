"""`kafka-storage format` does what Apache Kafka's does, for many arguments and configurations.

Compared: the exit status, the output, the files and what they contain, and in Kafka's words why
arguments are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.cli.script_transcripts import Answer, our_scripts
from tests.support.tools.tools import KAFKA_VERSION, REFERENCE_VERSION
from tests.unit.wirebroker.config.quorum_settings import BROKER, COMBINED, CONTROLLER
from wirebroker.codecs.primitives import uuid_from_text
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.codecs.records.control import KRaftVoters, SnapshotHeader
from wirebroker.quorum.log.metadata_batches import decode_batch
from wirebroker.quorum.log.metadata_snapshot import control_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(
        KAFKA_VERSION != REFERENCE_VERSION, reason="it formats for the newest release that it knows"
    ),
]

CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qk"
FIRST, SECOND, THIRD = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA"
LISTED: Final = f"1@c1:9093:{FIRST},2@c2:9093:{SECOND},3@c3:9093:{THIRD}"
USER: Final = (
    "SCRAM-SHA-256=[name=alice,iterations=4096,salt=TWtVM09FVkJOVGN3TlRKRU5ETTJRaw==,"
    "saltedpassword=MV5GhxyfrZuAaUbWKVJF6q5hUSFRWxJp7VTyaVnL3u8=]"
)

_DYNAMIC: Final = {"controller.quorum.bootstrap.servers": "localhost:9093"}


def dynamic(settings: dict[str, str]) -> dict[str, str]:
    """Return settings without static voters."""
    without = {name: text for name, text in settings.items() if "quorum.voters" not in name}
    return without | _DYNAMIC


class Format(NamedTuple):
    """A node's settings, and the arguments of one or more calls."""

    settings: dict[str, str]
    calls: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        kind = "static" if "controller.quorum.voters" in self.settings else "dynamic"
        words = " ".join(word for call in self.calls for word in call)
        return f"{self.settings['process.roles']} {kind} {words}"[:80]


def formats() -> Iterator[Format]:
    """Yield every combination of roles, quorums and flags, then special cases."""
    choices: tuple[tuple[str, ...], ...] = (
        (),
        ("--standalone",),
        ("--no-initial-controllers",),
        ("--initial-controllers", LISTED),
    )
    levels: tuple[tuple[str, ...], ...] = (
        (),
        ("--feature", "kraft.version=0"),
        ("--feature", "kraft.version=1"),
    )
    for settings in (COMBINED, CONTROLLER, BROKER):
        for quorum in (settings, dynamic(settings)):
            for choice in choices:
                for level in levels:
                    yield Format(quorum, ((*choice, *level),))
    yield from _special()


def _special() -> Iterator[Format]:
    standalone = dynamic(CONTROLLER)
    one = f"1@c1:9093:{FIRST}"
    for listed in (
        *("", ",", "1", "x@c1:1:x", "-1@c1:1:x", "1@", "1@[::1", "1@[::1]9", "1@c1"),
        *("1@c1:9", "1@c1:x:y", "1@c1:65536:y", "1@c1:9:y", f"{one},1@c2:9:{SECOND}", f"{one},"),
        *(f"1@[::1]:9093:{FIRST}", f"7@c7:9093:{FIRST}", f" {one} , 2@c2:9093:{SECOND}"),
        *("99999999999@c1:1:x", f"1@:9093:{FIRST}", f"1@c1:0:{FIRST}"),
    ):
        yield Format(standalone, ((f"--initial-controllers={listed}",),))
    for words in (
        *(("-r", "4.3"), ("-r", "3.9"), ("-r", "9.9"), ("-r", "4.5-IV0"), ("-r", "3.2")),
        *(("-f", "metadata.version=30"), ("-f", "metadata.version=30", "-r", "4.3")),
        *(("-f", "metadata.version=6"), ("-f", "metadata.version=34"), ("-f", "nosuch=1")),
        *(("-f", "group.version=9"), ("-f", "group.version=-1"), ("-f", "group.version")),
        *(("-f", "group.version=x"), ("-f", "group.version=0", "-f", "share.version=1")),
        *(("-f", "kraft.version=2"), ("-f", "eligible.leader.replicas.version=1", "-r", "3.9")),
        *(("-S", USER), ("-S", USER, "-r", "3.4"), ("-f", "transaction.version=1")),
    ):
        yield Format(standalone, (("-s", *words),))
    named = standalone | {
        "listeners": "OTHER://:9093,CONTROLLER://localhost:9094",
        "controller.listener.names": "OTHER,CONTROLLER",
        "listener.security.protocol.map": "OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    yield Format(named, (("-s",),))
    yield Format(named | {"advertised.listeners": "CONTROLLER://a:1,OTHER://b:2"}, (("-s",),))
    yield Format(named, (("-I", LISTED),))
    yield Format(standalone, (("-s",), ("-s",)))
    yield Format(standalone, (("-s",), ("-s", "-g")))
    yield Format(standalone, (("-s",), ("-s", "-g", "-t", FIRST)))
    yield Format(standalone, (("-s",), ("-N", "-g")))
    yield Format(CONTROLLER, ((), ("-g",)))
    yield Format(CONTROLLER | {"log.dirs": "DIR/a,DIR/b", "metadata.log.dir": "DIR/m"}, ((),))
    yield Format(standalone | {"log.dirs": "DIR/a,DIR/b"}, (("-I", LISTED),))


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.mark.parametrize("case", list(formats()), ids=str)
def test_format_does_what_kafkas_does(
    case: Format, kafka: KafkaScripts, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    theirs = _formatted(case, kafka.run, tmp_path / "kafka")
    ours = _formatted(case, our_scripts(capfd), tmp_path / "wirebroker")
    for their, our in zip(theirs.answers, ours.answers, strict=True):
        assert (our.status, _lines(our.out)) == (their.status, _lines(their.out)), (our, their)
        if their.status:
            assert our.err == f"{_refusal(their)} (see wirebroker kafka-storage format --help)\n"
    assert ours.contents == theirs.contents


class Formatted(NamedTuple):
    answers: list[Answer]
    contents: dict[str, object]


def _formatted(case: Format, run: Callable[[str, list[str]], Answer], folder: Path) -> Formatted:
    folder.mkdir()
    file = folder / "server.properties"
    settings = {"log.dirs": "DIR/data", **case.settings}
    lines = [f"{name}={text}\n" for name, text in settings.items()]
    file.write_text("".join(lines).replace("DIR", str(folder)))
    answers: list[Answer] = []
    for words in case.calls:
        cluster = () if "-t" in words else ("-t", CLUSTER)
        answer = run("kafka-storage", ["format", *cluster, "-c", str(file), *words])
        answers.append(
            Answer(answer.status, *(text.replace(str(folder), "DIR") for text in answer[1:]))
        )
    file.unlink()
    contents = {
        str(path.relative_to(folder)): _content(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return Formatted(answers, contents)


def _content(path: Path) -> object:
    if path.name == "meta.properties":
        return _identity(path.read_text())
    assert path.suffix == ".checkpoint"
    content = memoryview(path.read_bytes())
    found: list[object] = []
    for position, header in iterate_batches(content):
        batch = content[position : position + header.size]
        if header.is_control:
            found += map(_without_random_parts, control_records(batch, header))
        else:
            found += decode_batch(batch, header)
    return found


def _identity(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    given = (FIRST, SECOND, THIRD)
    return sorted(
        "directory.id" if line.startswith("directory.id=") and not line.endswith(given) else line
        for line in lines
    )


def _without_random_parts(record: object) -> object:
    if isinstance(record, SnapshotHeader):
        return SnapshotHeader
    if not isinstance(record, KRaftVoters):
        return record
    given = [uuid_from_text(directory) for directory in (FIRST, SECOND, THIRD)]
    return [
        voter if voter.directory_id in given else voter._replace(directory_id=b"")
        for voter in record.voters
    ]


def _lines(text: str) -> list[str]:
    """Return output in any order: Kafka's tool formats directories in the order of a hash table."""
    # Kafka's tool prints the users' keys too.
    shown = re.sub(r", ApiMessageAndVersion\(UserScram.* at version 0\)", "", text)
    return sorted(line for line in shown.splitlines() if line)


def _refusal(answer: Answer) -> str:
    """Return the words of an exception or a line of standard error."""
    line = next(line for line in answer.err.splitlines() if line.strip())
    return re.sub(r"^(Exception in thread \"main\" )?[\w.$]+(Exception|Error): ", "", line).strip()
