"""Readiness notifications to supervisors and other waiting programs."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.support.tools.waiting import PATIENCE_S
from wirebroker.broker.serve_process import (
    READY,
    STOPPING,
    notify_supervisor,
    readiness_lines,
)


@pytest.fixture
def supervisor(tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind(address)
        yield listening, address


def test_broker_process_notifies_ready_and_stopping(supervisor, tmp_path):
    listening, address = supervisor
    command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "data")],
        env={**os.environ, "NOTIFY_SOCKET": address},
        stdout=subprocess.PIPE,
        text=True,
    ) as broker:
        assert broker.stdout is not None
        try:
            assert listening.recv(100) == READY.encode()
            assert broker.stdout.readline().startswith("wirebroker ready on ")
        finally:
            broker.send_signal(signal.SIGTERM)
        assert listening.recv(100) == STOPPING.encode()
    assert broker.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="abstract names are Linux's")
def test_an_abstract_address_begins_with_an_at_sign(tmp_path):
    name = f"wirebroker-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        notify_supervisor(READY, {"NOTIFY_SOCKET": "@" + name})
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", [None, "", "relative"])
def test_no_notification_without_a_notify_socket(address, caplog):
    notify_supervisor(READY, {} if address is None else {"NOTIFY_SOCKET": address})
    assert caplog.records == []


def test_missing_notify_socket_is_logged(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        notify_supervisor(READY, {"NOTIFY_SOCKET": str(tmp_path / "none")})
    (record,) = caplog.records
    assert record.getMessage() == "NOTIFY_SOCKET: cannot send READY=1: No such file or directory"


def test_kafka_readiness_lines_are_logged_only_on_request():
    assert readiness_lines(1, {}) == []
    assert "[KafkaServer id=7] started" in readiness_lines(7, {"WIREBROKER_READY_WORDS": "kafka"})
