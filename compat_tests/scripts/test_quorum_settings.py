"""Apache Kafka refuses the settings of roles, voters and listeners that the table says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.tools.tools import KAFKA_VERSION, REFERENCE_VERSION
from tests.unit.wirebroker.config.quorum_settings import CASES, Case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(KAFKA_VERSION != REFERENCE_VERSION, reason="the words differ"),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaScripts]:
    with KafkaScripts() as scripts:
        yield scripts


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kafka_refuses_or_accepts_the_settings(
    case: Case, kafka: KafkaScripts, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    settings = {"log.dirs": f"{tmp_path}/data", **case.settings}
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    # The tool reads the settings as a broker does, then finds that the directory does not exist.
    answer = kafka.run("kafka-storage", ["info", "-c", str(file)])
    if case.kafka:
        assert case.kafka in answer.err
    else:
        assert f"{tmp_path}/data does not exist" in answer.out, answer.err
