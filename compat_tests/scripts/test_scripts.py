"""Our scripts and Kafka's scripts print the recorded output with both brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from compat_tests.scripts.record import TRANSCRIPTS
from tests.support.brokers.brokers import AUTHORIZED, make_broker
from tests.support.cli.script_transcripts import Answer, differs, our_scripts, played, steps_of
from tests.support.tools.tools import KAFKA_VERSION, REFERENCE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java

# Topics first, as recorded: before Kafka's internal ones exist.
NAMES = [
    "topics",
    *sorted(path.stem for path in TRANSCRIPTS.glob("*.txt") if path.stem != "topics"),
]


# Scripts and brokers; tests/unit/wirebroker/cli/kafka runs ours with ours, test_console.py ours at
# apache. The transcripts were recorded with theirs at apache.
PAIRS = [
    pytest.param(("ours", "apache"), id="ours-at-apache", marks=pytest.mark.nightly),
    pytest.param(("theirs", "apache"), id="theirs-at-apache", marks=pytest.mark.nightly),
    pytest.param(("theirs", "wirebroker"), id="theirs-at-wirebroker"),
]


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    scripts, kind = request.param
    return str(scripts), str(kind)


@pytest.fixture(scope="module")
def broker(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with make_broker(pair[1], tmp_path_factory.mktemp(pair[0]), AUTHORIZED) as running:
        yield running


@pytest.fixture(scope="module")
def theirs() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Callable[[str, list[str], str], Answer]:
    return our_scripts(capfd)


@pytest.mark.parametrize("name", NAMES)
def test_script_output_matches_transcript(
    name: str,
    pair: tuple[str, str],
    broker: Broker,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    if pair == ("theirs", "wirebroker") and name == "dump":
        pytest.skip(
            "the index of an active segment is not preallocated here: Kafka's tool wants it"
        )
    if name == "storage" and KAFKA_VERSION != REFERENCE_VERSION:
        pytest.skip("it formats by default for the newest release that it knows")
    run_here: Callable[[str, list[str], str], Answer] = request.getfixturevalue("ours")
    run = run_here if pair[0] == "ours" else request.getfixturevalue("theirs").run
    recorded = steps_of(TRANSCRIPTS / f"{name}.txt")
    results = played(
        recorded,
        run,
        bootstrap=broker.bootstrap,
        folder=tmp_path,
        data=broker.data_dir,
        patience_s=30.0,
    )
    for expected, result in zip(recorded, results, strict=True):
        assert not differs(expected, result), (expected.command, result.said, expected.said)
