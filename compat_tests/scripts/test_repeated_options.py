"""Kafka's command-line options, given once and twice, have the same results as in Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.brokers.brokers import AUTHORIZED, make_broker
from tests.support.cli.repeated_options import REPEATED, files_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.nightly]


def test_kafka_accepts_repeated_options_as_in_table(tmp_path: Path) -> None:
    files_in(tmp_path)
    with (
        make_broker("apache", tmp_path / "broker", AUTHORIZED) as broker,
        KafkaScripts() as scripts,
    ):
        segment = broker.data_dir / "orders-0" / "00000000000000000000.log"
        creation = ["--bootstrap-server", broker.bootstrap, "--create", "--topic", "orders"]
        assert scripts.run("kafka-topics", creation).status == 0
        for row in REPEATED:
            script, *words = row.words(2, broker.bootstrap, tmp_path, segment)
            result = scripts.run(script, words)
            assert (row.message in result.out + result.err) == row.is_refused, (row, result)
            if not row.is_refused:
                assert result.status == 0, (row, result)
