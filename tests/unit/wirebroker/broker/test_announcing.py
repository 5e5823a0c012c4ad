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
from wirebroker.broker.announcing import READY, STOPPING, tell_supervisor, waited_for


@pytest.fixture
def supervisor(tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind(address)
        yield listening, address


def test_a_broker_process_says_when_it_is_ready_and_when_it_stops(supervisor, tmp_path):
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
        tell_supervisor(READY, {"NOTIFY_SOCKET": "@" + name})
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", [None, "", "relative"])
def test_without_a_supervisor_nobody_is_told(address, caplog):
    tell_supervisor(READY, {} if address is None else {"NOTIFY_SOCKET": address})
    assert caplog.records == []


def test_a_supervisor_that_is_gone_is_logged(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        tell_supervisor(READY, {"NOTIFY_SOCKET": str(tmp_path / "none")})
    (record,) = caplog.records
    assert record.getMessage() == (
        "NOTIFY_SOCKET: READY=1 could not be told: No such file or directory"
    )


def test_kafkas_words_are_said_only_to_those_who_ask():
    assert waited_for(1, {}) == []
    assert "[KafkaServer id=7] started" in waited_for(7, {"WIREBROKER_READY_WORDS": "kafka"})
