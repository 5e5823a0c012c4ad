"""Apache Kafka with the JMX exporter, which serves its metrics over HTTP."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import ApacheKafka
from tests.support.tools import tools
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_VERSION: Final = "1.0.1"
_JAR: Final = f"io.prometheus.jmx:jmx_prometheus_javaagent:{_VERSION}"

# Without rules, all attributes are exported.
NO_RULES: Final = 'rules: [{pattern: ".*"}]\n'
# As in Strimzi's kafka-metrics.yaml, and in the exporter's own example for Kafka.
STRIMZI_RULES: Final = """\
lowercaseOutputName: true
rules:
- pattern: "kafka.server<type=(.+), clientSoftwareName=(.+), clientSoftwareVersion=(.+),\\
    \\ listener=(.+), networkProcessor=(.+)><>connections"
  name: kafka_server_$1_connections_software
  type: GAUGE
  labels:
    clientSoftwareName: "$2"
    clientSoftwareVersion: "$3"
    listener: "$4"
    networkProcessor: "$5"
- pattern: kafka.server<type=(.+), user=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$4
  type: GAUGE
  labels:
    resource: "$1"
    user: "$2"
    clientId: "$3"
- pattern: kafka.server<type=(.+), client-id=(.+)><>([a-z-]+)
  name: kafka_server_quota_$3
  type: GAUGE
  labels:
    resource: "$1"
    clientId: "$2"
- pattern: kafka.server<type=(.+), user=(.+)><>([a-z-]+)
  name: kafka_server_quota_$3
  type: GAUGE
  labels:
    resource: "$1"
    user: "$2"
"""
# As in Confluent's kafka_broker.yml.
CONFLUENT_RULES: Final = """\
lowercaseOutputName: true
lowercaseOutputLabelNames: true
rules:
- pattern: "kafka.server<type=socket-server-metrics, clientSoftwareName=(.+),\\
    \\ clientSoftwareVersion=(.+), listener=(.+), networkProcessor=(.+)><>connections"
  name: kafka_server_socketservermetrics_connections
  type: GAUGE
  labels:
    client_software_name: "$1"
    client_software_version: "$2"
    listener: "$3"
    network_processor: "$4"
- pattern: 'kafka.server<type=(Produce|Fetch|Request), user=(.+), client-id=(.+)><>(.+):'
  name: kafka_server_$1_$4
  type: GAUGE
  labels:
    user: "$2"
    client-id: "$3"
- pattern: 'kafka.server<type=(Produce|Fetch|Request), user=(.+)><>(.+):'
  name: kafka_server_$1_$3
  type: GAUGE
  labels:
    user: "$2"
- pattern: 'kafka.server<type=(Produce|Fetch|Request), client-id=(.+)><>(.+):'
  name: kafka_server_$1_$3
  type: GAUGE
  labels:
    client-id: "$2"
"""


class KafkaWithExporter(ApacheKafka):
    """A broker with the exporter as a Java agent.

    Attributes:
        metrics_url: The page.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        java_options: Sequence[str] = (),
        rules: str = STRIMZI_RULES,
    ) -> None:
        super().__init__(directory, settings, java_options=java_options)
        self._http_port = free_port()
        self._rules = rules
        self.metrics_url = f"http://{HOST}:{self._http_port}/metrics"

    def _command(self) -> list[str]:
        rules = self.directory / "rules.yml"
        rules.write_text(self._rules, encoding="utf-8")
        command = super()._command()
        agent = f"-javaagent:{exporter_jar()}={HOST}:{self._http_port}:{rules}"
        return [command[0], agent, *command[1:]]


@cache
def exporter_jar() -> Path:
    """Return the exporter's jar, from Maven Central."""
    folder = tools._installed(
        f"jmx-exporter-{_VERSION}", lambda building: tools._install_jars([_JAR], building)
    )
    (jar,) = folder.glob(f"jmx_prometheus_javaagent-{_VERSION}.jar")
    return jar
