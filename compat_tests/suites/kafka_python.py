"""kafka-python's own integration tests, unchanged, against a running broker.

They come with its sources on PyPI, in the version that is installed here. The sources lack
`test/service.py`, which starts brokers; a few lines here replace it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from compat_tests.suites.outcomes import Outcome, from_junit
from tests.support.brokers import java_start
from tests.support.brokers.brokers import AUTHORIZED, ApacheKafka, Wirebroker
from tests.support.tools import tools
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

TRANSACTION_TESTS = ("-k", "transactional")
# All tests except those that start their own secured broker; includes ACLs.
SECURITY_TESTS = ("-k", "not test_ssl_integration")
# The tests create members with sessions of 3 s, and commit offsets of partition 1.
BROKER_SETTINGS = {"group.min.session.timeout.ms": "1000", "num.partitions": "4"}
SECURITY_SETTINGS = {**BROKER_SETTINGS, **AUTHORIZED}
LIMIT_S = 600.0

_SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port
    def open(self):
        pass
    def close(self):
        pass

class SpawnedService:
    def __init__(self, *args, **settings):
        raise RuntimeError("these tests start no broker")
"""


class _Kafka(ApacheKafka):
    def _choose_ports(self) -> None:
        super()._choose_ports()
        text = self._properties.read_text()
        text = text.replace("node.id=1\n", "node.id=0\n").replace("voters=1@", "voters=0@")
        self._properties.write_text(text)


class _Wirebroker(Wirebroker):
    def _prepare(self) -> None:
        super()._prepare()
        listener = f"PLAINTEXT://{HOST}:{self.port}"
        self.settings |= {"node.id": "0", "advertised.listeners": listener}


def broker_for_all(kind: str, directory: Path) -> Broker:
    """Return a broker for the whole suite, not started.

    The tests assign replicas to node 0 and expect its advertised address as an explicitly set
    config.
    """
    if kind == "apache":
        return _Kafka(directory, SECURITY_SETTINGS, java_options=java_start.options())
    return _Wirebroker(directory, SECURITY_SETTINGS)


@cache
def suite_folder() -> Path:
    """Return the folder with kafka-python's sources and tests.

    Raises:
        ToolError: They could not be fetched.
    """
    version = metadata.version("kafka-python")
    return tools._installed(f"kafka-python-tests-{version}", _install)


def run(arguments: Sequence[str], bootstrap: str, directory: Path) -> list[Outcome]:
    directory.mkdir(parents=True, exist_ok=True)
    output, results = directory / "kafka-python.txt", directory / "kafka-python.xml"
    results.unlink(missing_ok=True)
    environment = {
        "KAFKA_URI": f"kafka://{bootstrap.partition(',')[0]}",
        "KAFKA_VERSION": tools.KAFKA_VERSION,
        "KAFKA_ROOT": "/",  # of a release; read, not used
    }
    options = ["-q", "--timeout=60", "--timeout-method=signal", "-p", "no:cacheprovider"]
    command = [
        *(sys.executable, "-m", "pytest", *options, "-o", "log_level=WARNING"),
        *(f"--junitxml={results}", "test/integration", *arguments),
    ]
    status = tools.run_logged(
        command, output, directory=suite_folder(), limit_s=LIMIT_S, environment=environment
    )
    if status is None:
        return [Outcome("the suite as a whole", "failed", "it did not end")]
    if not results.is_file():
        text = output.read_text(errors="replace")
        return [Outcome("the suite as a whole", "failed", text[-2000:])]
    return list(from_junit(results))


def _install(folder: Path) -> None:
    package = f"kafka-python=={metadata.version('kafka-python')}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    tools._run([*pip, package], directory=folder)
    (archive,) = folder.glob("*.tar.gz")
    tools._run(["tar", "xf", archive.name, "--strip-components=1"], directory=folder)
    archive.unlink()
    (folder / "test" / "__init__.py").touch()
    (folder / "test" / "service.py").write_text(_SERVICE)
