"""Recorded client requests of a broker in test mode."""

from __future__ import annotations

import contextlib
import json
from typing import Any, cast

import pytest

from tests.support.http.kit_http import ask_over_http
from tests.support.protocol.raw_client import BlockingClient
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.http.message import HttpRequest
from wirebroker.http.routes import Routes
from wirebroker.request.request import Request
from wirebroker.request.session import Session
from wirebroker.testing import Broker
from wirebroker.testing.faults.disturbance import Disturbance
from wirebroker.testing.faults.fault_table import FaultTable
from wirebroker.testing.requests import request_journal
from wirebroker.testing.test_mode.control_routes import add_controls
from wirebroker.testing.test_mode.controls import BrokerControls


@pytest.fixture
def broker(shared):
    shared.forget_requests()
    return shared


def ask(broker, *questions):
    host, port = broker.bootstrap_servers.split(":")
    with contextlib.closing(BlockingClient((host, int(port)))) as client:
        for question in questions:
            client.ask(*question)


METADATA = (ApiKey.METADATA, 12, {"topics": None})
HEARTBEAT = (ApiKey.HEARTBEAT, 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})
RECORDS = b"no batch"
PRODUCE = (
    ApiKey.PRODUCE,
    9,
    {
        "acks": -1,
        "timeout_ms": 1000,
        "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": RECORDS}]}],
    },
)


def test_requests_are_returned_decoded_and_in_order(broker):
    ask(broker, METADATA, PRODUCE, HEARTBEAT)
    assert [request.api for request in broker.requests()] == ["METADATA", "PRODUCE", "HEARTBEAT"]
    (produce,) = broker.requests(api="produce")
    assert (produce.api, produce.version) == ("PRODUCE", 9)
    (topic,) = produce.body["topic_data"]
    assert topic["partition_data"] == [{"index": 0, "records": RECORDS}]
    assert broker.requests(ApiKey.HEARTBEAT, most=1)[0].body["member_id"] == "m"
    assert [request.api for request in broker.requests(most=2)] == ["PRODUCE", "HEARTBEAT"]
    assert "PRODUCE v9" in str(produce)


def test_clients_are_distinguished_and_own_requests_omitted(broker):
    broker.produce("orders", "one")
    broker.records("orders")
    assert broker.requests() == []
    ask(broker, METADATA)
    (request,) = broker.requests()
    assert broker.requests(client_id=request.client_id) == [request]
    assert broker.requests(client_id="another client") == []
    broker.forget_requests()
    assert broker.requests() == []


def test_unknown_api_is_refused(broker):
    with pytest.raises(ValueError, match=r"no request is called PRODUCER; did you mean PRODUCE\?"):
        broker.requests(api="PRODUCER")


def test_repeated_identical_requests_are_recorded_too():
    """A prepared Produce bypasses request admission."""
    import confluent_kafka

    with Broker() as broker:
        producer = confluent_kafka.Producer({**broker.client_config("confluent"), "linger.ms": 0})
        for number in range(5):
            producer.produce("orders", str(number).encode())
            assert producer.flush(30) == 0
        sent = broker.requests(api="PRODUCE")
        assert len(sent) == 5
        assert sent[0].client_id == "rdkafka"


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(request_journal, "MOST_REQUESTS", 3)
    monkeypatch.setattr(request_journal, "MOST_BODY_BYTES", 50)
    with Broker() as broker:
        ask(broker, *[HEARTBEAT] * 4, METADATA)
        assert [request.api for request in broker.requests()] == [
            "HEARTBEAT",
            "HEARTBEAT",
            "METADATA",
        ]
        long = (HEARTBEAT[0], HEARTBEAT[1], HEARTBEAT[2] | {"member_id": "m" * 100})
        ask(broker, long)
        assert broker.requests(most=1)[0].body is None
        monkeypatch.setattr(request_journal, "MOST_BYTES", 0)
        ask(broker, METADATA)
        assert broker.requests() == []


def test_long_client_id_counts_against_the_limit(monkeypatch):
    monkeypatch.setattr(request_journal, "MOST_BYTES", 70_000)
    journal = request_journal.RequestJournal()
    session = Session(connection_id="1", peer="p", listener_name="l", local_host="h", local_port=1)
    for _ in range(5):
        request = Request(ApiKey.METADATA, 12, 0, "c" * 30_000, memoryview(b""), 0, session)
        journal.add(request)
    assert len(journal.rows(key=None, client_id=None, most=None)) == 2


async def test_disconnect_frees_a_black_hole_request():
    faults = FaultTable()
    faults.add({"kind": "blackhole"})
    (fault,) = faults.concerning(ApiKey.METADATA, "c")
    session = Session(connection_id="1", peer="p", listener_name="l", local_host="h", local_port=1)
    request = Request(ApiKey.METADATA, 12, 0, "c", memoryview(bytearray()), 0, session)
    never: Any = Disturbance(None, request, cast("Any", None)).by(fault, faults)
    assert len(faults._when_removed) == 1
    session.end()
    await next_turn()
    assert never.cancelled()
    assert not faults._when_removed


def test_requests_are_available_over_http():
    with Broker.spawn() as broker:
        ask(broker, PRODUCE)
        status, (request,) = ask_over_http(broker, "/test/v1/requests?api=PRODUCE")
        assert status == 200
        (partition,) = request["body"]["topic_data"][0]["partition_data"]
        assert partition["records"] == {"base64": "bm8gYmF0Y2g="}
        status, body = ask_over_http(broker, "/test/v1/requests?topic=t")
        assert (status, body["error"]) == (
            400,
            "/test/v1/requests takes api, client_id, most arguments, not topic",
        )
        assert ask_over_http(broker, "/test/v1/requests?most=x")[0] == 400
        assert ask_over_http(broker, "/test/v1/requests", method="DELETE") == (200, None)
        assert ask_over_http(broker, "/test/v1/requests") == (200, [])
        status, described = ask_over_http(broker, "/test/v1/openapi.json")
        assert (status, described["openapi"]) == (200, "3.1.0")
        assert described["paths"].keys() >= {"/test/v1/requests", "/test/v1/clock"}
        broker.kill()
        with pytest.raises(ConnectionError, match="is not running"):
            broker.requests()


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("faults", {"kind": "delay", "delay_ms": 1, "topic": [1]}, "topic must be of type string"),
        ("faults", {"kind": "error", "api": 5, "error": "X"}, "api must be of type string"),
        ("faults/limit", {"id": 1}, "times is missing"),
        ("faults/limit", {"id": True, "times": 1}, "id must be of type integer"),
        ("clock", {"freeze": "no"}, "freeze must be of type boolean"),
        ("clock/restore", {"passed_ms": 1}, "jumped_ms is missing"),
        ("clock/restore", {"passed_ms": 10**200, "jumped_ms": 0}, "the clock is too far from"),
    ],
)
async def test_invalid_argument_is_refused_without_effect(path, body, said):
    routes = Routes()
    controls = BrokerControls()
    add_controls(routes, controls)
    route = routes.find("POST", f"/test/v1/{path}")
    request = HttpRequest("POST", f"/test/v1/{path}", {}, {}, json.dumps(body).encode())
    answer = await route.answering(request)
    assert answer.status == 400
    assert said in json.loads(answer.body)["error"]
    assert not controls.faults


def test_mode_requires_a_protected_http_port():
    from wirebroker.cli.main import run

    assert run(["serve", "--test-mode", "--set", "wirebroker.http.open=true"]) == 2
