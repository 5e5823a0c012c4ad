"""Feature levels of a fresh Apache Kafka 4.4.0: what was recorded of it is what it says.

Runs where its jars lie: KAFKA_44_LIBS names their folder. What wirebroker says is compared with the
same record in tests/unit/wirebroker/test_features_of_kafka.py.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.support import tools
from tests.support.brokers import ApacheKafka
from tests.support.feature_conversation import hold
from tests.support.raw_client import BlockingClient
from tests.support.tools import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

RECORDED = PROJECT / "tests" / "unit" / "wirebroker" / "features_of_kafka.json"
LIBS = os.environ.get("KAFKA_44_LIBS")


@pytest.mark.skipif(LIBS is None, reason="KAFKA_44_LIBS names no jars of Apache Kafka 4.4.0")
def test_kafka_says_what_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "kafka_jars", lambda: LIBS)
    with (
        ApacheKafka(tmp_path / "kafka") as kafka,
        contextlib.closing(BlockingClient(("127.0.0.1", kafka.port))) as client,
    ):
        assert hold(client.ask) == json.loads(RECORDED.read_text(encoding="utf-8"))
