"""Services beside a broker, as child processes of it."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wirebroker.broker.companions import LocalBroker
from wirebroker.broker.console_process import ConsoleOptions, console_process
from wirebroker.cli.services.delivery_child import delivery_child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.broker.companion_process import CompanionProcess

ADDRESS = "127.0.0.1:9092"
BROKER = LocalBroker(ADDRESS)


class StartedModule:
    """Replaces `start_module`: a shell script in place of the service."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: str = "cat") -> None:
        self.script = script
        self.words: tuple[str, ...] = ()
        self.environment: Mapping[str, str] = {}
        monkeypatch.setattr("wirebroker.broker.companion_process.start_module", self.start)

    async def start(
        self, *words: str, environment: Mapping[str, str]
    ) -> asyncio.subprocess.Process:
        self.words = words
        self.environment = environment
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", self.script, stdin=pipe, stdout=pipe
        )


def run_once(child: CompanionProcess, broker: LocalBroker = BROKER) -> None:
    async def serve() -> None:
        await child.start(broker)
        await child.stop()

    asyncio.run(serve())


@pytest.mark.parametrize(
    ("child", "words"),
    [
        (
            console_process(ConsoleOptions(8080, None)),
            f"console --broker-address {ADDRESS} --port 8080 --stop-with-stdin",
        ),
        (
            console_process(ConsoleOptions(0, Path("/etc/clusters"), "p")),
            f"console --config /etc/clusters --profile p --broker-address {ADDRESS} --port 0"
            " --stop-with-stdin",
        ),
        (
            delivery_child(None, {"wirebroker.delivery.group": "g", "log.dirs": "/data"}),
            f"delivery run --until-input-ends --bootstrap {ADDRESS}"
            " --set wirebroker.delivery.group=g",
        ),
    ],
)
def test_a_service_is_started_for_the_brokers_address_and_ends_with_its_input(
    monkeypatch, caplog, child, words
):
    module = StartedModule(monkeypatch)
    run_once(child)
    assert module.words == ("wirebroker", *words.split())
    assert caplog.text == ""


def test_a_console_knows_the_test_mode_of_its_broker(monkeypatch):
    module = StartedModule(monkeypatch)
    broker = LocalBroker(ADDRESS, {1: "http://127.0.0.1:8080"}, "hush")
    run_once(console_process(ConsoleOptions(0, None, is_test_mode=True)), broker)
    assert "--broker-test-mode" in module.words
    assert "hush" not in module.words, "other users see the arguments of a process"


def test_a_console_knows_the_metrics_of_its_broker_and_their_token(monkeypatch):
    module = StartedModule(monkeypatch)
    urls = {1: "http://127.0.0.1:9404", 2: "http://127.0.0.1:9405"}
    run_once(console_process(ConsoleOptions(0, None)), LocalBroker(ADDRESS, urls, "secret"))
    assert module.words == (
        "wirebroker",
        *f"console --broker-address {ADDRESS}".split(),
        *("--broker-http", "1=http://127.0.0.1:9404"),
        *("--broker-http", "2=http://127.0.0.1:9405"),
        *["--port", "0", "--stop-with-stdin"],
    )
    assert module.environment == {"WIREBROKER_CONSOLE_HTTP_TOKEN": "secret"}


def test_the_broker_continues_if_a_service_cannot_be_started(monkeypatch, caplog):
    async def refuse(*_words: str, environment: Mapping[str, str]) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("wirebroker.broker.companion_process.start_module", refuse)
    run_once(delivery_child(None, {}))
    assert (
        "without its delivery service, which cannot be started: Resource temporarily unavailable"
        in caplog.text
    )


def test_a_service_that_ends_by_itself_is_reported(monkeypatch, caplog, capfd):
    StartedModule(monkeypatch, "echo ready; exit 3")

    async def serve() -> None:
        child = delivery_child(None, {})
        await child.start(BROKER)
        assert child._watch is not None
        await child._watch
        await child.stop()

    asyncio.run(serve())
    assert capfd.readouterr().out == "ready\n"
    assert "the delivery service ended with status 3; the broker continues" in caplog.text


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), ValueError("closed file")])
@pytest.mark.parametrize(
    "script", ["echo ready; cat; echo stopped", "tr '\\0' x < /dev/zero | head -c 200000"]
)
def test_a_closed_output_of_the_broker_stops_nothing(monkeypatch, caplog, error, script):
    class ClosedOutput(io.StringIO):
        def write(self, _text: str) -> int:
            raise error

    StartedModule(monkeypatch, script)
    monkeypatch.setattr("sys.stdout", ClosedOutput())
    run_once(delivery_child(None, {}))
    assert caplog.text == ""


def test_a_service_that_does_not_end_is_killed(monkeypatch, caplog):
    StartedModule(monkeypatch, "exec sleep 600")
    child = delivery_child(None, {})
    child._command = child._command._replace(stop_timeout_s=0.05)
    run_once(child)
    assert "the delivery service is killed: it did not end in" in caplog.text
