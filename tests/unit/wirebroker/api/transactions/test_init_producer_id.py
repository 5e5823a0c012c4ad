"""InitProducerId: unique ids, blocks shared by waiting requests, and invalid requests."""

import asyncio
from types import SimpleNamespace

import pytest

import wirebroker.api.transactions.init_producer_id  # noqa: F401 - registers the handler
from tests.unit.wirebroker.api.api_kit import answer, answer_soon, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.brokers.producer_ids import BLOCK_SIZE
from wirebroker.coordinator.transactions.settings import TransactionSettings

KEY = ApiKey.INIT_PRODUCER_ID


@pytest.mark.parametrize("version", range(6))
def test_every_version_returns_an_id_with_epoch_zero(version):
    broker = make_broker()
    replies = [
        answer(broker, KEY, version, transactional_id=None, transaction_timeout_ms=1)
        for _ in range(2)
    ]
    assert [(reply.error_code, reply.producer_id, reply.producer_epoch) for reply in replies] == [
        (0, 0, 0),
        (0, 1, 0),
    ]


async def test_concurrent_requests_share_one_block_of_distinct_ids():
    broker = make_broker()
    requests = [
        answer_soon(broker, KEY, 4, transactional_id=None, transaction_timeout_ms=1)
        for _ in range(BLOCK_SIZE + 10)
    ]
    replies = await asyncio.gather(*requests)
    ids, blocks = [reply.producer_id for reply in replies], broker.metadata.submitted
    assert sorted(ids) == list(range(BLOCK_SIZE + 10))
    assert blocks == 2


async def test_failed_allocation_is_reported_and_retried():
    broker = make_broker()
    real = broker.metadata.handle

    async def failing(request):
        return {"error_code": int(ErrorCode.KAFKA_STORAGE_ERROR)}

    broker.metadata.handle = failing
    body = {"transactional_id": None, "transaction_timeout_ms": 1}
    first = await answer_soon(broker, KEY, 4, **body)
    broker.metadata.handle = real
    second = await answer_soon(broker, KEY, 4, **body)
    assert (first.error_code, first.producer_id, first.producer_epoch) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        -1,
        -1,
    )
    assert (second.error_code, second.producer_id) == (0, 0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 0},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        ({"transactional_id": None, "producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_unsupported_request_is_refused_with_kafkas_error_code(body, code):
    broker = make_broker()
    broker.transactions = SimpleNamespace(settings=TransactionSettings())
    reply = answer(broker, KEY, 4, **({"transaction_timeout_ms": 1000} | body))
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (code, -1, -1)


def test_producer_that_sends_its_id_and_epoch_gets_a_new_id():
    reply = answer(
        make_broker(),
        KEY,
        4,
        transactional_id=None,
        transaction_timeout_ms=1,
        producer_id=5,
        producer_epoch=3,
    )
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (0, 0, 0)
