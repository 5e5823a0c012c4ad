"""One broker per module, in each kind of process, emptied for each test."""

from __future__ import annotations

import contextlib

import pytest

from tests.support.protocol.raw_client import BlockingClient
from wirebroker.testing import Broker


@pytest.fixture(scope="module", params=[False, True], ids=["same process", "own process"])
def shared(request):
    with Broker(own_process=request.param) as broker:
        yield broker


@pytest.fixture
def broker(shared):
    shared.reset()
    return shared


@pytest.fixture
def client(broker):
    host, port = broker.bootstrap_servers.split(":")
    with contextlib.closing(BlockingClient((host, int(port)))) as client:
        yield client
