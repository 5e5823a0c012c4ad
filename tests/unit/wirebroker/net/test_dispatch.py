"""The way from frame to handler and back, and the ownership of bytes."""

import asyncio
import struct

import pytest

from tests.support.brokers.dispatch_line import DispatchLine
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_response, encode_request
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.pending import HandlerFailedError
from wirebroker.request.handlers import Registry
from wirebroker.request.request import CloseConnectionError


def frame(key: int, version: int, body: bytes = b"", *, correlation_id: int = 7) -> bytes:
    head = struct.pack(">hhih", key, version, correlation_id, 3) + b"abc"
    if key in API_VERSIONS and version >= API_VERSIONS[ApiKey(key)].first_flexible:
        head += b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


async def exchange(registry: Registry, data: bytes, broker: object = None) -> bytes:
    return await DispatchLine(Dispatcher(broker, registry)).exchange(data)


def answers(data: bytes) -> list[tuple[int, bytes]]:
    """Return (correlation id, body with the rest of the header) per response."""
    result = []
    while data:
        length, correlation_id = struct.unpack_from(">ii", data)
        result.append((correlation_id, data[8 : 4 + length]))
        data = data[4 + length :]
    return result


async def test_raw_handler_gets_the_request_and_returns_response_bytes():
    registry = Registry()
    received: list[object] = []

    @registry.handles_raw(ApiKey.METADATA)
    def metadata(broker, request):
        received.append((broker, request.key, request.version, request.client_id))
        received.append(bytes(request.frame[request.position :]))
        return [b"one", b"two"]

    data = await exchange(
        registry, frame(3, 9, b"body") + frame(3, 1, b"body", correlation_id=8), "us"
    )
    assert received == [
        ("us", ApiKey.METADATA, 9, "abc"),
        b"body",
        ("us", ApiKey.METADATA, 1, "abc"),
        b"body",
    ]
    assert answers(data) == [(7, b"\0onetwo"), (8, b"onetwo")]


async def test_a_generic_handler_gets_a_decoded_body_and_returns_a_mapping():
    registry = Registry()

    @registry.handles(ApiKey.DELETE_TOPICS)
    def delete_topics(broker, request, body):
        return {"responses": [{"name": name, "error_code": 3} for name in body.topic_names]}

    request = encode_request(ApiKey.DELETE_TOPICS, 4, {"topic_names": ["a", "b"], "timeout_ms": 1})
    ((_, body),) = answers(await exchange(registry, frame(20, 4, request)))
    decoded = decode_response(ApiKey.DELETE_TOPICS, 4, body, 1)
    assert [(response.name, response.error_code) for response in decoded.responses] == [
        ("a", 3),
        ("b", 3),
    ]


@pytest.mark.parametrize("topic_count", [2, 20_000])
async def test_generic_handlers_may_wait_and_long_bodies_go_through_a_thread(topic_count):
    registry = Registry()

    @registry.handles(ApiKey.DELETE_TOPICS)
    async def delete_topics(broker, request, body):
        await asyncio.get_running_loop().run_in_executor(None, int)
        return {"responses": [{"name": name} for name in body.topic_names]}

    names = [f"topic-{number}" for number in range(topic_count)]
    request = encode_request(ApiKey.DELETE_TOPICS, 4, {"topic_names": names, "timeout_ms": 1})
    ((_, body),) = answers(await exchange(registry, frame(20, 4, request)))
    decoded = decode_response(ApiKey.DELETE_TOPICS, 4, body, 1)
    assert [response.name for response in decoded.responses] == names


async def test_no_response_is_sent_for_none():
    registry = Registry()

    @registry.handles_raw(ApiKey.PRODUCE)
    def produce(broker, request):
        return None

    assert await exchange(registry, frame(0, 9)) == b""


async def test_responses_keep_request_order_when_one_waits():
    registry = Registry()

    @registry.handles_raw(ApiKey.FETCH)
    async def fetch(broker, request):
        await asyncio.get_running_loop().run_in_executor(None, int)
        return [b"slow"]

    @registry.handles_raw(ApiKey.METADATA)
    def metadata(broker, request):
        return [b"quick"]

    data = frame(1, 4, correlation_id=1) + frame(3, 1, correlation_id=2)
    assert answers(await exchange(registry, data)) == [(1, b"slow"), (2, b"quick")]


async def test_api_versions_in_an_unknown_version_is_answered_with_its_own_range():
    # As in Apache Kafka 4.3.1: v0, error 35, one key (KIP-511).
    expected = struct.pack(">hihhh", 35, 1, 18, 0, 5)
    for version in (99, -1, 5):
        assert answers(await exchange(Registry(), frame(18, version))) == [(7, expected)]


@pytest.mark.parametrize(
    ("key", "version", "cause"),
    [
        (3, 99, "METADATA version 99 is not supported, only 0 to 13"),
        (3, -1, "METADATA version -1 is not supported"),
        (0, 2, "PRODUCE version 2 is not supported, only 3 to 13"),
        (1, 3, "FETCH version 3 is not supported, only 4 to 18"),
        (36, 0, r"api key 36 \(SASL_AUTHENTICATE\) is not supported"),
        (999, 0, "unknown api key 999"),
        (-1, 0, "unknown api key -1"),
    ],
)
async def test_unsupported_request_closes_connection_with_a_reason(key, version, cause):
    registry = Registry()
    for served in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA):
        registry.handles_raw(served)(lambda _broker, _request: [b""])
    with pytest.raises(MalformedFrameError, match=cause):
        await exchange(registry, frame(key, version))


@pytest.mark.parametrize("is_async", [False, True])
async def test_any_exception_of_a_handler_is_an_internal_error(is_async):
    registry = Registry()

    def fail():
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)

    async def fail_later(broker, request):
        fail()

    registry.handles_raw(ApiKey.METADATA)(fail_later if is_async else lambda *_: fail())
    with pytest.raises(HandlerFailedError, match="METADATA version 1 failed") as caught:
        await exchange(registry, frame(3, 1))
    assert isinstance(caught.value.__cause__, KafkaError)


@pytest.mark.parametrize("error", [MalformedFrameError("bad"), CloseConnectionError("enough")])
async def test_a_handler_may_refuse_the_request_or_the_connection(error):
    registry = Registry()

    @registry.handles_raw(ApiKey.METADATA)
    def metadata(broker, request):
        raise error

    @registry.handles_raw(ApiKey.FETCH)
    async def fetch(broker, request):
        raise error

    for key, version in ((3, 1), (1, 4)):
        with pytest.raises(type(error), match=str(error)):
            await exchange(registry, frame(key, version))


async def test_a_malformed_body_is_refused():
    registry = Registry()
    registry.handles(ApiKey.DELETE_TOPICS)(lambda *_: {})
    with pytest.raises(MalformedFrameError):
        await exchange(registry, frame(20, 4, b"\xff" * 20))


async def test_coroutine_handler_may_use_its_frame_while_it_runs():
    registry = Registry()

    @registry.handles_raw(ApiKey.FETCH)
    async def fetch(broker, request):
        await asyncio.get_running_loop().run_in_executor(None, int)
        return [bytes(request.frame[request.position :])]

    line = DispatchLine(Dispatcher(None, registry))
    task = asyncio.create_task(line.exchange(frame(1, 4, b"before")))
    while line.connection.is_busy or not task.done():
        # Data of other connections overwrites the same memory.
        line.connection.protocol._area.view[:200] = b"z" * 200
        await next_turn()
    assert answers(task.result()) == [(7, b"before")]


async def test_handler_may_keep_the_frame_or_a_part_of_it():
    registry = Registry()
    kept_views = []

    @registry.handles_raw(ApiKey.METADATA)
    def metadata(broker, request):
        view = request.frame[request.position :]
        kept_views.append(request.kept(view))
        request.keep()
        kept_views.append(view)
        return [b""]

    await exchange(registry, frame(3, 1, b"first") + frame(3, 1, b"other"))
    assert [bytes(view) for view in kept_views] == [b"first", b"first", b"other", b"other"]


def test_two_handlers_of_one_key_are_an_assertion_error():
    registry = Registry()
    registry.handles(ApiKey.METADATA)(lambda *_: {})
    with pytest.raises(AssertionError, match="METADATA has two handlers"):
        registry.handles_raw(ApiKey.METADATA)(lambda *_: None)
    assert registry.registered_keys() == [ApiKey.METADATA]
