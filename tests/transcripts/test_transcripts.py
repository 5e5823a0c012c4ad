"""Replay of every transcript recorded from Apache Kafka; the responses must be the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transcripts.agreed import agreed_of, is_known
from tests.transcripts.comparing import found_differences
from tests.transcripts.files import driver_for, name_of, transcripts
from tests.transcripts.script import parse, render

if TYPE_CHECKING:
    from pathlib import Path

FILES = transcripts()


@pytest.mark.parametrize("file", FILES, ids=map(name_of, FILES))
def test_the_broker_answers_as_apache_kafka_did(
    file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.config.getoption("--broker", default="wirebroker")
    if not is_known(kind, name_of(file)):
        pytest.skip("this version lacks the API")
    steps = parse(file.read_text())
    with driver_for(file, kind, tmp_path, steps) as driver:
        differences = found_differences(steps, driver)
    assert differences == agreed_of(kind, name_of(file)), "\n".join(
        [f"{file.name} differs:", *differences]
    )


@pytest.mark.parametrize("file", FILES, ids=map(name_of, FILES))
def test_a_transcript_is_written_as_it_was_read(file: Path) -> None:
    text = file.read_text()
    assert render(parse(text)) == text
