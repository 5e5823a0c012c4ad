"""The checks before a handler is called."""

import asyncio
from typing import Any

from tests.support.brokers.dispatch_line import DispatchLine
from tests.support.records.batches import batch
from tests.unit.wirebroker.api.data.prepared_kit import world_of
from tests.unit.wirebroker.net.test_dispatch import answers, frame
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import ALTER_TOPIC, DESCRIBE_TOPIC
from wirebroker.net.dispatch import Dispatcher
from wirebroker.request.handlers import Cost, Registry
from wirebroker.request.request_admission import RequestAdmission


def ask(registry: Registry, data: bytes, **options) -> list[tuple[int, bytes]]:
    async def run() -> bytes:
        return await DispatchLine(Dispatcher(None, registry, **options)).exchange(data)

    return answers(asyncio.run(run()))


def two_handlers() -> Registry:
    registry = Registry()
    describe = registry.handles_raw(ApiKey.METADATA, permissions=(DESCRIBE_TOPIC,))
    describe(lambda *_: [b"described"])

    @registry.handles_raw(
        ApiKey.CREATE_PARTITIONS, permissions=(ALTER_TOPIC,), cost=Cost.CONTROLLER
    )
    def create_partitions(_broker, _request):
        return [b"created"]

    return registry


def test_admission_is_asked_once_and_can_answer_for_the_handler():
    calls = []

    def decide(request, handler):
        calls.append((request.key, request.client_id, request.session.principal.name))
        return [b"no"] if ALTER_TOPIC in handler.permissions else None

    data = frame(ApiKey.METADATA, 1) + frame(ApiKey.CREATE_PARTITIONS, 0, correlation_id=8)
    assert ask(two_handlers(), data, admission=RequestAdmission(decide)) == [
        (7, b"described"),
        (8, b"no"),
    ]
    assert calls == [
        (ApiKey.METADATA, "abc", "ANONYMOUS"),
        (ApiKey.CREATE_PARTITIONS, "abc", "ANONYMOUS"),
    ]


async def test_prepared_request_is_valid_for_one_admission_epoch(tmp_path):
    async with world_of(tmp_path) as world:
        await world.learn()
        admission = world.admission
        await world.append(b"3")
        assert world.short_count == 1
        admission.epoch += 1
        await world.append(b"4")
        assert world.short_count == 1
        await world.append(b"5")
        assert world.short_count == 2
        # Admitting another kind of request does not renew prepared requests.
        admission.epoch += 1
        prepared = world.memo
        await world.exchange(frame(ApiKey.API_VERSIONS, 0))
        assert world.memo is prepared
        await world.produce({("t", 0): batch(b"6")})
        assert world.memo is not prepared


async def test_started_request_is_not_refused_later(tmp_path):
    async with world_of(tmp_path, 2) as world:
        both = {("t", index): batch(b"a") for index in range(2)}
        for _ in range(2):
            await world.produce(both)
        world.is_closed = True
        faulty = both | {("t", 1): batch(b"a")[:-1] + b"!"}
        results = await world.produce(faulty)
        assert [result.error_code for result in results] == [0, ErrorCode.CORRUPT_MESSAGE]
        assert [len(world.stored(index)) for index in range(2)] == [3, 2]


async def test_started_request_is_forgotten_with_its_frame(tmp_path):
    async with world_of(tmp_path, 2) as world:
        await world.learn()
        memo: Any = world.memo
        memo.begun = {0: None}
        await world.append(b"3")
        assert memo.begun is None
