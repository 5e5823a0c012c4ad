"""Feature levels of a new Apache Kafka cluster equal the recorded ones.

tests/unit/wirebroker/quorum/test_features_of_kafka.py compares wirebroker's with the same record.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers import java_start
from tests.support.brokers.brokers import ApacheKafka
from tests.support.protocol.feature_conversation import hold
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools import tools
from tests.support.tools.tools import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

RECORDED = PROJECT / "tests" / "unit" / "wirebroker" / "quorum" / "features_of_kafka.json"


@pytest.mark.skipif(not tools.IS_REFERENCE, reason="another version is not recorded")
def test_kafka_output_matches_recorded_output(tmp_path: Path) -> None:
    with (
        ApacheKafka(tmp_path / "kafka", java_options=java_start.options()) as kafka,
        contextlib.closing(BlockingClient(("127.0.0.1", kafka.port))) as client,
    ):
        assert hold(client.ask) == json.loads(RECORDED.read_text(encoding="utf-8"))
