"""The scripts print what Apache Kafka's print, by recorded transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.brokers.brokers import AUTHORIZED
from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.script_transcripts import differs, our_scripts, played, steps_of

TRANSCRIPTS = Path(__file__).parent / "transcripts"


NAMES = [path.stem for path in sorted(TRANSCRIPTS.glob("*.txt"))]


@pytest.mark.parametrize("name", NAMES)
def test_script_output_equals_kafkas(name, tmp_path, capfd):
    settings = ONE_NODE | (AUTHORIZED if name == "acls" else {})
    recorded = steps_of(TRANSCRIPTS / f"{name}.txt")
    config = config_of(tmp_path / "data", settings=settings)
    with ThreadedServer(config) as server:
        host, port = server.address
        played_steps = played(
            recorded,
            our_scripts(capfd),
            bootstrap=f"{host}:{port}",
            folder=tmp_path,
            data=tmp_path / "data",
        )
    for kafka_step, wirebroker_step in zip(recorded, played_steps, strict=True):
        assert not differs(kafka_step, wirebroker_step), (
            kafka_step.command,
            wirebroker_step.said,
            kafka_step.said,
        )
