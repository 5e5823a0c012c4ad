"""A broker's life cycle: start, ready, stop by signal, restart, and failed starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, config_of, running
from tests.support.protocol.raw_client import BlockingClient, RawClient
from tests.support.protocol.requests import (
    append,
    create_topic,
    fetch,
    fetch_request,
    produce,
    produce_request,
)
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.api.modules import API_MODULES, LATE_MODULES
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.config import StartError
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.quorum.controller.quorum_controller import QuorumController
from wirebroker.replica.replica_manager import ReplicaManager
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator

READY = re.compile(r"wirebroker ready on 127\.0\.0\.1:(\d+) \(node 1, cluster ([\w-]{22})\)\n")


class Process:
    def __init__(self, directory: Path, *arguments: str) -> None:
        self.port_file = directory / "port"
        command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
        command += ["--data-dir", str(directory / "data"), "--port-file", str(self.port_file)]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")
        }
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ready(self) -> re.Match[str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = READY.fullmatch(line)
        assert match, line or self.process.communicate()[1]
        return match

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, log


@contextlib.contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[Process]:
    directory.mkdir(parents=True, exist_ok=True)
    process = Process(directory, *arguments)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.communicate()


@contextlib.contextmanager
def hanging_up(disposition: signal.Handlers) -> Iterator[None]:
    """Let children inherit a SIGHUP action, even if the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, disposition)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_stops_cleanly_and_restart_keeps_everything(tmp_path, number):
    with hanging_up(signal.SIG_DFL), serving(tmp_path) as process:
        ready = process.ready()
        port = int(ready[1])
        assert process.port_file.read_text() == f"{port}\n"
        client = BlockingClient(("127.0.0.1", port))
        topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
        client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 1000})
        client.ask(ApiKey.PRODUCE, 9, produce_request({("t", 0): batch(b"a", b"b")}))
        client.close()
        status, log = process.end(number)
        assert (status, "Traceback" in log) == (0, False)
        assert not process.port_file.exists()
    marker = tmp_path / "data" / ".kafka_cleanshutdown"
    assert json.loads(marker.read_text())["brokerEpoch"] >= 0
    with serving(tmp_path) as process:
        again = process.ready()
        assert again[2] == ready[2], "the cluster's id stays"
        assert not marker.exists()
        client = BlockingClient(("127.0.0.1", int(again[1])))
        answer = client.ask(ApiKey.FETCH, 12, fetch_request({("t", 0): 0}))
        assert values_in(answer.responses[0].partitions[0].records) == [b"a", b"b"]
        client.close()


def test_kill_loses_no_acknowledged_record(tmp_path):
    with serving(tmp_path) as process:
        client = BlockingClient(("127.0.0.1", int(process.ready()[1])))
        topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
        client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 1000})
        for value in (b"a", b"b"):
            client.ask(ApiKey.PRODUCE, 9, produce_request({("t", 0): batch(value)}))
        client.close()
        process.end(signal.SIGKILL)
    with serving(tmp_path) as process:
        client = BlockingClient(("127.0.0.1", int(process.ready()[1])))
        answer = client.ask(ApiKey.FETCH, 12, fetch_request({("t", 0): 0}))
        assert values_in(answer.responses[0].partitions[0].records) == [b"a", b"b"]
        client.close()


def test_a_second_interrupt_ends_the_process_at_once(tmp_path):
    with serving(tmp_path, "--set", "message.max.bytes=50000000") as process:
        client = BlockingClient(("127.0.0.1", int(process.ready()[1])))
        topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
        client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 1000})
        records = {("t", 0): batch(b"x" * 40_000_000)}
        client.ask(ApiKey.PRODUCE, 9, produce_request(records))
        # A response that the client does not read; a clean stop waits for it.
        client.send(ApiKey.FETCH, 12, fetch_request({("t", 0): 0}, partition_max_bytes=1 << 30))
        other = BlockingClient(client.address)
        other.ask(ApiKey.API_VERSIONS, 0, {})
        other.close()
        process.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_S
        while _accepts(client.address):
            assert time.monotonic() < deadline
        status, _ = process.end(signal.SIGINT)
        assert status == 130
        client.close()


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def test_two_brokers_do_not_share_a_data_directory(tmp_path):
    with serving(tmp_path / "a") as process:
        process.ready()
        data = str(tmp_path / "a" / "data")
        with serving(tmp_path / "b", "--data-dir", data) as second:
            out, log = second.process.communicate(timeout=PATIENCE_S)
            assert (second.process.returncode, out) == (2, "")
            assert log.count("\n") == 1
            assert "is in use by another broker" in log
            assert not second.port_file.exists()
        assert process.port_file.exists()


def test_port_in_use_is_reported_before_anything_is_written(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as socket_in_use:
        port = str(socket_in_use.getsockname()[1])
        with serving(tmp_path, "--port", port) as process:
            _, log = process.process.communicate(timeout=PATIENCE_S)
        assert process.process.returncode == 2
        assert log.count("\n") == 1
        assert f"cannot listen on 127.0.0.1:{port}" in log
        assert "stop the process that uses it" in log
        assert not (tmp_path / "data").exists()


def test_a_port_file_that_cannot_be_written_stops_the_broker(tmp_path):
    with serving(tmp_path, "--port-file", str(tmp_path / "nowhere" / "port")) as process:
        _, log = process.process.communicate(timeout=PATIENCE_S)
    assert process.process.returncode == 2
    assert "cannot write the port file" in log
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_stale_port_file_is_removed_before_logs_are_read(tmp_path):
    (tmp_path / "port").write_text("1\n")
    LogDirectory.open(str(tmp_path / "data"), Files(), node_id=1).close()
    (tmp_path / "data" / "__cluster_metadata-0").mkdir()
    (tmp_path / "data" / "__cluster_metadata-0" / "quorum-state").write_text("no quorum")
    with serving(tmp_path) as process:
        process.process.communicate(timeout=PATIENCE_S)
    assert not process.port_file.exists()


def test_ignored_sighup_does_not_stop_the_broker(tmp_path):
    with hanging_up(signal.SIG_IGN), serving(tmp_path) as process:  # as with nohup
        port = int(process.ready()[1])
        process.process.send_signal(signal.SIGHUP)
        client = BlockingClient(("127.0.0.1", port))
        assert client.ask(ApiKey.API_VERSIONS, 0, {}).error_code == 0
        client.close()
        status, log = process.end(signal.SIGTERM)
        assert (status, log.count("stopping")) == (0, 1)


@pytest.mark.parametrize("how", ["file", "flag"])
def test_broker_on_every_interface_reports_and_warns(tmp_path, how):
    arguments = ["--host", "0.0.0.0"]
    if how == "file":  # as Kafka accepts it
        (tmp_path / "p").write_text("num.partitions=1\n")
        arguments = ["--config", str(tmp_path / "p")]
    with serving(tmp_path, *arguments) as process:
        assert process.process.stdout is not None
        lines = [process.process.stdout.readline() for _ in range(3)]
        port = process.port_file.read_text().strip()
        match = re.match(r"wirebroker ready on (\S+):(\d+) ", lines[0])
        assert match
        assert match[1] in {"0.0.0.0", "[::]"}
        assert match[2] == port
        assert "interface, port" in lines[1]
        assert f"connect to 127.0.0.1:{port} here" in lines[1]
        assert lines[2] == f"  data: {tmp_path / 'data'}\n"
        _, log = process.end(signal.SIGTERM)
    (warning,) = [line for line in log.splitlines() if "unprotected" in line]
    assert "PLAINTEXT (every" in warning


def test_broker_on_loopback_logs_no_warning(tmp_path):
    with serving(tmp_path) as process:
        process.ready()
        _, log = process.end(signal.SIGTERM)
    assert "WARNING" not in log


async def test_listener_opened_to_others_at_runtime_causes_a_warning(tmp_path, caplog):
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://0.0.0.0:0,INSIDE://127.0.0.2:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
    }

    async with running(tmp_path) as server:
        assert server.listeners is not None
        await server.listeners.follow(config_of(tmp_path, settings=settings))
    (warning,) = [message for message in caplog.messages if "unprotected" in message]
    assert warning.startswith("OUTSIDE (every IPv4 interface, port ")


def test_an_ipv6_address_is_shown_in_brackets(tmp_path):
    with serving(tmp_path, "--host", "::1") as process:
        assert process.process.stdout is not None
        assert process.process.stdout.readline().startswith("wirebroker ready on [::1]:")


async def test_address_of_another_machine_is_refused_with_advice(tmp_path):
    settings = {"listeners": "PLAINTEXT://192.0.2.1:0"}
    error = await start_error(Server(config_of(tmp_path, settings=settings)))
    assert "cannot listen on 192.0.2.1:0" in error
    assert "choose an address that this machine has" in error


async def start_error(server: Server) -> str:
    try:
        with pytest.raises(StartError) as caught:
            await server.start()
    finally:
        await server.stop()
    return str(caught.value)


async def test_a_directory_of_another_node_is_refused(tmp_path):
    async with running(tmp_path):
        pass
    error = await start_error(Server(config_of(tmp_path, settings={"node.id": "7"})))
    assert "belongs to node 1" in error


async def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "data").write_text("")
    error = await start_error(Server(config_of(tmp_path / "data")))
    assert "cannot use the data directory" in error
    assert "it is not a directory" in error


async def test_failed_start_releases_lock_and_port(tmp_path):
    """The lock and the port are free again."""
    (tmp_path / "__cluster_metadata-0").write_text("no directory")
    with pytest.raises(StartError, match="Not a directory"):
        await _start_and_stop(tmp_path)
    (tmp_path / "__cluster_metadata-0").unlink()
    await _start_and_stop(tmp_path)


async def test_failed_start_ends_the_controller_tasks(tmp_path):
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    settings = {"listeners": listeners, "controller.listener.names": "CONTROLLER"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
    metadata = tmp_path / "t-0" / "partition.metadata"
    metadata.unlink()
    metadata.mkdir()
    before = asyncio.all_tasks()
    with pytest.raises(StartError, match="cannot be read"):
        await _start_and_stop(tmp_path, settings)
    duties = {"balance leaders", "remove expired tokens"}
    assert not duties & {task.get_name() for task in asyncio.all_tasks() - before}


async def _start_and_stop(path: Path, settings: dict[str, str] | None = None) -> None:
    async with running(path, settings=settings):
        pass


async def test_requests_in_flight_are_answered_before_the_stop(tmp_path):
    server = Server(config_of(tmp_path))
    await server.start()
    client = await RawClient.connect(server.address)
    await create_topic(client, "t")
    request = fetch_request({("t", 0): 0}, max_wait_ms=30_000)
    correlation_id = await client.send(ApiKey.FETCH, 12, request)
    partitions, _ = broker_of(server).replicas.find("t", b"", by_id=False)
    await until(lambda: partitions[0]._watchers)
    address = server.address
    stopping = asyncio.create_task(server.stop())
    answer = await client.receive(ApiKey.FETCH, 12, correlation_id)
    assert answer.error_code == 0
    assert await client.is_closed()
    await stopping
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(*address)
    await client.close()


async def test_ids_survive_restarts(tmp_path):
    identities: list[tuple[str, int, Any]] = []
    for _ in range(3):
        async with running(tmp_path) as server, client_of(server) as client:
            broker = broker_of(server)
            if not identities:
                await create_topic(client, "t")
            topic_id = broker.metadata.image.topics["t"].topic_id
            identities.append((broker.cluster_id, broker.node_id, topic_id))
            node = broker.metadata.image.brokers[broker.node_id]
            assert not node.fenced
            await append(client, "t", batch(b"a"))
    assert identities[0] == identities[1] == identities[2]
    async with running(tmp_path) as server, client_of(server) as client:
        assert len(values_in((await fetch(client, "t", 0)).records)) == 3


@pytest.mark.parametrize("junk", [bytes(4096), b"junk"])
async def test_junk_appended_after_a_clean_stop_is_removed(tmp_path, junk):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
    log = tmp_path / "t-0" / f"{0:020d}.log"
    with log.open("ab") as file:
        file.write(junk)
    # Within one tick of the clock that stamps files.
    stopped = (tmp_path / "t-0" / f"{1:020d}.snapshot").stat()
    os.utime(log, ns=(stopped.st_mtime_ns, stopped.st_mtime_ns))
    async with running(tmp_path) as server, client_of(server) as client:
        await append(client, "t", batch(b"b"))
        assert values_in((await fetch(client, "t", 0)).records) == [b"a", b"b"]


async def test_two_brokers_live_in_one_process(tmp_path):
    async with (
        running(tmp_path / "a") as first,
        running(tmp_path / "b") as second,
        client_of(first) as client,
        client_of(second) as other,
    ):
        await create_topic(client, "t")
        assert (await produce(client, "t", batch(b"a"))).error_code == 0
        assert (await produce(other, "t", batch(b"a"))).error_code != 0


def test_server_loads_every_handler_module():
    import wirebroker.api

    registering = {
        f"{file.parent.name}.{file.stem}"
        for file in Path(wirebroker.api.__path__[0]).glob("*/*.py")
        if file.parent.name != "controller"
        and re.search(r"^@(handles|forwards)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert registering == {*API_MODULES, *LATE_MODULES}


def ask_while_logs_are_opened(monkeypatch, ask):
    """Send the next start's controller a request between opening logs and starting followers."""
    controllers: list[QuorumController] = []
    check_usable, load = QuorumController._check_usable, ReplicaManager.load

    def noted(controller):
        controllers.append(controller)
        check_usable(controller)

    async def slow_load(replicas, image):
        await load(replicas, image)
        (controller,) = controllers
        await ask(controller)

    monkeypatch.setattr(QuorumController, "_check_usable", noted)
    monkeypatch.setattr(ReplicaManager, "load", slow_load)


async def test_metadata_changes_during_log_loading_are_applied(tmp_path, monkeypatch):
    async with running(tmp_path) as server, client_of(server) as client:
        for name in ("kept", "deleted"):
            await create_topic(client, name)

    async def delete(controller):
        body = SimpleNamespace(topic_names=["deleted"], topics=[], timeout_ms=1000)
        answer = await controller.handle(ControllerRequest(ApiKey.DELETE_TOPICS, 6, body))
        assert [response["error_code"] for response in answer["responses"]] == [0]

    ask_while_logs_are_opened(monkeypatch, delete)
    async with running(tmp_path) as server:
        replicas = broker_of(server).replicas
        assert set(broker_of(server).metadata.image.topics) == {"kept"}
        assert {replica.topic for replica in replicas} == {"kept"}


async def test_config_changes_during_log_loading_are_applied(tmp_path, monkeypatch):
    async with running(tmp_path) as server, client_of(server) as client:
        for name in ("own", "default"):
            await create_topic(client, name)

    async def alter(controller):
        changes = [(2, "own", "max.message.bytes", "777"), (4, "", "message.max.bytes", "888")]
        resources = [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": config, "config_operation": 0, "value": value}],
            }
            for kind, name, config, value in changes
        ]
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS
        body = decode_request(key, 1, encode_request(key, 1, {"resources": resources}), 0)
        request = ControllerRequest(key, 1, body)
        answer = await controller.handle(request)
        assert [response["error_code"] for response in answer["responses"]] == [0, 0]

    ask_while_logs_are_opened(monkeypatch, alter)
    async with running(tmp_path) as server:
        broker = broker_of(server)
        find = broker.replicas.find
        limits = {
            name: find(name, b"", by_id=False)[0][0].log.settings.max_message_bytes
            for name in ("own", "default")
        }
        assert limits == {"own": 777, "default": 888}
        assert broker.config.int("message.max.bytes") == 888
