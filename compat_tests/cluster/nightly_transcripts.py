"""The transcripts at a cluster member, `python -m tests.nightly cluster-transcripts`.

The tested broker is node 1; its controller is another process, so node 1 forwards requests with the
client's name and applies the result before it responds. The responses must equal the recorded ones
of Apache Kafka.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.cluster.nodes import FIRST_CONTROLLER, Cluster
from compat_tests.cluster.own_controller import OwnController
from tests.support.brokers.brokers import HOST
from tests.transcripts.agreed import AGREED
from tests.transcripts.comparing import found_differences
from tests.transcripts.driver import Driver
from tests.transcripts.script import Step, parse
from tests.transcripts.test_transcripts import FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.long

# By transcript, the sentences in which a member differs; see docs/compatibility.md.
AGREED_OF_MEMBERS: Final[dict[str, list[str]]] = {}


@contextlib.contextmanager
def driver_of_member(directory: Path, steps: Sequence[Step]) -> Iterator[Driver]:
    assignments = [
        word for step in steps if step.command[0] == "settings" for word in step.command[1:]
    ]
    settings = dict(word.split("=", 1) for word in assignments)
    cluster = Cluster(directory, controllers=0, settings=settings)
    controller = OwnController(cluster, FIRST_CONTROLLER)
    try:
        controller.start()
        member = cluster.wirebroker(1, settings)
        with contextlib.closing(Driver(HOST, member.port, restart=member.restart)) as driver:
            yield driver
    finally:
        cluster.stop()
        controller.stop()


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_member_responses_match_transcript_of_apache_kafka(file: Path, tmp_path: Path) -> None:
    steps = parse(file.read_text())
    with driver_of_member(tmp_path, steps) as driver:
        differences = found_differences(steps, driver)
    agreed = AGREED_OF_MEMBERS.get(file.stem, AGREED.get(file.stem, []))
    assert differences == agreed, "\n".join([f"{file.name} differs:", *differences])
