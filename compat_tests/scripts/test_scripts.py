"""Our scripts say of Apache Kafka what its own say; its own say what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from compat_tests.scripts.record import TRANSCRIPTS
from tests.support.brokers import AUTHORIZED, make_broker
from tests.support.script_transcripts import Answer, differs, our_scripts, played, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers import Broker

pytestmark = pytest.mark.java

# Topics first, as they were recorded: none of Kafka's own is there yet.
NAMES = [
    "topics",
    *sorted(each.stem for each in TRANSCRIPTS.glob("*.txt") if each.stem != "topics"),
]


@pytest.fixture(scope="module", params=["ours", "theirs"])
def run_by(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def apache(run_by: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with make_broker("apache", tmp_path_factory.mktemp(run_by), AUTHORIZED) as running:
        yield running


@pytest.fixture(scope="module")
def theirs() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Callable[[str, list[str], str], Answer]:
    return our_scripts(capfd)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_says_what_was_recorded(
    name: str,
    run_by: str,
    apache: Broker,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    ours: Callable[[str, list[str], str], Answer] = request.getfixturevalue("ours")
    run = ours if run_by == "ours" else request.getfixturevalue("theirs").run
    recorded = steps_of(TRANSCRIPTS / f"{name}.txt")
    said = played(
        recorded,
        run,
        bootstrap=apache.bootstrap,
        folder=tmp_path,
        data=apache.data_dir,
        patience_s=30.0,
    )
    for expected, found in zip(recorded, said, strict=True):
        assert not differs(expected, found), (expected.command, found.said, expected.said)
