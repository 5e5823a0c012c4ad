"""Both brokers open directories that our kafka-storage has formatted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.brokers.brokers import ApacheKafka
from tests.support.brokers.servers import ThreadedServer
from tests.support.cli.script_transcripts import our_scripts
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.cli.script_transcripts import Answer

pytestmark = pytest.mark.java

USER = "SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=8192]"
SHOWN = "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192\n"


class FormattedHere(ApacheKafka):
    run: Callable[..., Answer]

    def format(self) -> None:
        words = ["format", "-t", self._CLUSTER_ID, "-c", str(self._properties), "-S", USER]
        answer = self.run("kafka-storage", [*words, *self.format_options])
        assert answer.status == 0, answer


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="static", marks=pytest.mark.nightly),
        pytest.param(["--standalone"], id="dynamic"),
    ],
)
def test_both_brokers_start_from_directory_formatted_by_kafka_storage(
    options: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_script = our_scripts(capfd)
    broker = FormattedHere(tmp_path)
    broker.run = run_script
    broker.has_dynamic_voters = bool(options)
    broker.format_options = options
    users = ["--describe", "--entity-type", "users"]
    with broker, KafkaScripts() as kafka_scripts:
        flags = ["--bootstrap-server", broker.bootstrap, *users]
        assert kafka_scripts.run("kafka-configs", flags).out == SHOWN
        assert (
            kafka_scripts.run("kafka-storage", ["info", "-c", str(broker._properties)]).status == 0
        )
    config = load_config(file=broker._properties, environment={}, flags={})
    with ThreadedServer(config) as server:
        flags = ["--bootstrap-server", "{}:{}".format(*server.address), *users]
        assert run_script("kafka-configs", flags).out == SHOWN
