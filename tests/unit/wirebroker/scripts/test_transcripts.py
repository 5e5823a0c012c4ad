"""Our scripts say what Apache Kafka's say, transcript by transcript."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.script_transcripts import Answer, differs, played, steps_of
from tests.support.servers import ThreadedServer, config_of
from wirebroker import cli

TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.fixture
def run(capfd):
    def one(script: str, arguments: list[str], text: str) -> Answer:
        capfd.readouterr()
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
            file.write(text.encode())
            file.seek(0)
            patch.setattr(sys, "stdin", file)
            status = cli.run([script, *arguments])
        return Answer(status, *capfd.readouterr())

    return one


NAMES = [path.stem for path in sorted(TRANSCRIPTS.glob("*.txt"))]
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_script_says_what_kafkas_says(name, run, tmp_path):
    settings = {
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    settings |= AUTHORIZED if name == "acls" else {}
    recorded = steps_of(TRANSCRIPTS / f"{name}.txt")
    config = config_of(tmp_path / "data", settings=settings)
    with ThreadedServer(config) as server:
        host, port = server.address
        said = played(
            recorded, run, bootstrap=f"{host}:{port}", folder=tmp_path, data=tmp_path / "data"
        )
    for theirs, ours in zip(recorded, said, strict=True):
        assert not differs(theirs, ours), (theirs.command, ours.said, theirs.said)
