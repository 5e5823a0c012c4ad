"""Replay of every transcript recorded from Apache Kafka; the responses must be the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.agreed import agreed_of, is_known
from tests.transcripts.brokers import fresh_driver
from tests.transcripts.comparing import found_differences
from tests.transcripts.script import parse, render

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_the_broker_answers_as_apache_kafka_did(
    file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.config.getoption("--broker", default="wirebroker")
    if not is_known(kind, file.stem):
        pytest.skip("this version lacks the API")
    steps = parse(file.read_text())
    with fresh_driver(kind, tmp_path, steps) as driver:
        differences = found_differences(steps, driver)
    assert differences == agreed_of(kind, file.stem), "\n".join(
        [f"{file.name} differs:", *differences]
    )


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_transcript_is_written_as_it_was_read(file: Path) -> None:
    text = file.read_text()
    assert render(parse(text)) == text
