"""Ports that no other process is given."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.support.harness.project_files import ROOT
from tests.support.tools.ports import HOST, free_port, free_ports


def test_port_is_not_reused_immediately():
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20


def test_outgoing_connections_use_other_ports():
    with (
        socket.create_server((HOST, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getsockname()[1] > max(free_ports(50))


def test_port_in_use_is_skipped():
    while True:
        first = free_port()
        try:
            server = socket.create_server((HOST, first + 1))
        except OSError:
            continue  # another process was given it
        with server:
            assert free_port() != first + 1
        return


def test_other_process_gets_different_ports():
    command = "from tests.support.tools.ports import free_ports; print(*free_ports(50))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {*map(int, done.stdout.split())} & {*free_ports(150)}
