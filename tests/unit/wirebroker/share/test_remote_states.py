"""Requests to another node's share coordinator: joined, split, failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tools.waiting import until
from wirebroker.base.clock import next_turn
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    StateBatch,
    StateError,
    StateSummary,
    StateWrite,
)
from wirebroker.net.client.errors import (
    CannotConnectError,
    ConnectionLostError,
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from wirebroker.share.remote_states import RemoteStates
from wirebroker.share.state_rpcs import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    StateRpc,
)

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey

TOPIC = b"t" * 16
A, B, C = (TOPIC, 0), (TOPIC, 1), (b"o" * 16, 0)
BATCHES = (StateBatch(1, 4, 2, 3), StateBatch(5, 5, 0, 1))
STATE = PersistedState(3, 7, -1, BATCHES)


class ScriptedNode:
    """A node that answers when `release` is called."""

    def __init__(self) -> None:
        self.requests: list[tuple[ApiKey, Any]] = []
        self.fails_with: Exception | None = None
        self.results: Any = None
        self.is_open = asyncio.Event()

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        assert timeout_s == 30
        request = decode_request(key, 0, encode_request(key, 0, body), 0)
        self.requests.append((key, request))
        await self.is_open.wait()
        if self.fails_with is not None:
            raise self.fails_with
        results = [
            {
                "topic_id": topic.topic_id,
                "partitions": [{"partition": entry.partition} for entry in topic.partitions],
            }
            for topic in request.topics
        ]
        response = {"results": results if self.results is None else self.results}
        return decode_response(key, 0, encode_response(key, 0, response), 0)

    def partitions(self, index: int) -> list[tuple[bytes, int]]:
        """Return the partitions of a request."""
        _, request = self.requests[index]
        return [
            (topic.topic_id, entry.partition)
            for topic in request.topics
            for entry in topic.partitions
        ]


def remote_of(node: ScriptedNode | None) -> RemoteStates:
    found: Any = node
    return RemoteStates(lambda _: found)


async def test_requests_for_a_busy_node_are_joined_by_group() -> None:
    node = ScriptedNode()
    remote = remote_of(node)
    first = remote.request(2, DELETE, "g", {A: None})
    await until(lambda: len(node.requests) == 1)
    later = [
        remote.request(2, DELETE, "g", {B: None}),
        remote.request(2, DELETE, "g", {C: None}),
        remote.request(2, DELETE, "h", {A: None}),
    ]
    await next_turn()
    assert node.partitions(0) == [A]
    assert len(node.requests) == 1
    node.is_open.set()
    assert await first == {A: None}
    assert [await results for results in later] == [{B: None}, {C: None}, {A: None}]
    assert [request.group_id for _, request in node.requests] == ["g", "g", "h"]
    assert node.partitions(1) == [B, C]


async def test_kinds_of_requests_do_not_wait_for_each_other() -> None:
    node = ScriptedNode()
    remote = remote_of(node)
    results = [remote.request(2, DELETE, "g", {A: None}), remote.request(2, READ, "g", {A: 1})]
    await until(lambda: [key for key, _ in node.requests] == [DELETE.key, READ.key])
    node.is_open.set()
    assert await results[0] == {A: None}
    assert await results[1] == {A: PersistedState(0, 0, -1, ())}


async def test_many_partitions_are_sent_in_several_requests() -> None:
    node = ScriptedNode()
    node.is_open.set()
    many = [(TOPIC, index) for index in range(1_200)]
    results = await remote_of(node).request(2, DELETE, "g", dict.fromkeys(many))
    assert results == dict.fromkeys(many)
    sizes = [len(node.partitions(index)) for index in range(len(node.requests))]
    assert sizes == [500, 500, 200]


async def test_long_writes_are_sent_in_several_requests() -> None:
    node = ScriptedNode()
    node.is_open.set()
    batches = tuple(StateBatch(offset, offset, offset % 2 * 2, 1) for offset in range(400))
    long = {partition: StateWrite(0, 0, 0, 0, batches) for partition in (A, B, C)}
    results = await remote_of(node).request(2, WRITE, "g", long)
    assert results == dict.fromkeys(long)
    assert [node.partitions(index) for index in range(2)] == [[A, B], [C]]


async def test_after_a_lost_connection_the_other_partitions_fail_too() -> None:
    node = ScriptedNode()
    node.fails_with = ConnectionLostError("n:1", "gone")
    node.is_open.set()
    many = [(TOPIC, index) for index in range(1_200)]
    results = await remote_of(node).request(2, DELETE, "g", dict.fromkeys(many))
    assert results == dict.fromkeys(many, state_error(ErrorCode.NETWORK_EXCEPTION))
    assert len(node.requests) == 1


async def test_repeated_partition_is_sent_in_another_request() -> None:
    node = ScriptedNode()
    node.is_open.set()
    remote = remote_of(node)
    results = [
        remote.request(2, READ, "g", {A: 1, B: 1}),
        remote.request(2, READ, "g", {A: 2}),
        remote.request(2, READ, "g", {C: 1}),
    ]
    for result in results:
        await result
    assert [node.partitions(index) for index in range(2)] == [[A, B, C], [A]]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestTimedOutError("n:1", "late"), ErrorCode.REQUEST_TIMED_OUT),
        (UnsupportedVersionError("n:1", "old"), ErrorCode.UNSUPPORTED_VERSION),
        (ConnectionLostError("n:1", "gone"), ErrorCode.NETWORK_EXCEPTION),
        (CannotConnectError("n:1", "refused"), ErrorCode.NETWORK_EXCEPTION),
    ],
)
async def test_error_without_a_response(error: PeerError, code: ErrorCode) -> None:
    node = ScriptedNode()
    node.fails_with = error
    node.is_open.set()
    assert await remote_of(node).request(2, DELETE, "g", {A: None}) == {A: state_error(code)}


async def test_unknown_node() -> None:
    results = await remote_of(None).request(2, DELETE, "g", {A: None})
    assert results == {A: state_error(ErrorCode.NETWORK_EXCEPTION)}


async def test_partition_that_the_response_lacks() -> None:
    node = ScriptedNode()
    node.results = []
    node.is_open.set()
    results = await remote_of(node).request(2, WRITE, "g", {A: StateWrite(0, 0, 0, 0, ())})
    message = "Failed to write state for share partition: g:dHR0dHR0dHR0dHR0dHR0dA:0"
    assert results == {A: StateError(ErrorCode.UNKNOWN_SERVER_ERROR, message)}


async def test_failure_of_one_request_does_not_end_the_queue() -> None:
    node = ScriptedNode()
    node.fails_with = ValueError("a bug")
    node.is_open.set()
    remote = remote_of(node)
    (error,) = (await remote.request(2, DELETE, "g", {A: None})).values()
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    node.fails_with = None
    assert await remote.request(2, DELETE, "g", {A: None}) == {A: None}


async def test_stop_fails_what_waits() -> None:
    node = ScriptedNode()
    remote = remote_of(node)
    sent = remote.request(2, DELETE, "g", {A: None})
    await until(lambda: len(node.requests) == 1)
    queued = remote.request(2, DELETE, "g", {B: None})
    await remote.stop()
    gone = state_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert (await sent, await queued) == ({A: gone}, {B: gone})
    assert await remote.request(2, DELETE, "g", {C: None}) == {C: gone}


@pytest.mark.parametrize(
    ("rpc", "data"),
    [
        (INITIALIZE, (3, -1)),
        (READ, 5),
        (WRITE, StateWrite(1, 2, 3, 4, BATCHES)),
        (DELETE, None),
        (READ_SUMMARY, 5),
    ],
    ids=lambda value: value.name if isinstance(value, StateRpc) else "",
)
def test_data_in_a_request(rpc: StateRpc, data: Any) -> None:
    frame = encode_request(rpc.key, 1 if rpc is WRITE else 0, rpc.request("g", {A: data, C: data}))
    request = decode_request(rpc.key, 1 if rpc is WRITE else 0, frame, 0)
    assert request.group_id == "g"
    for topic, topic_id in zip(request.topics, (TOPIC, b"o" * 16), strict=True):
        assert topic.topic_id == topic_id
        assert [rpc.decode_data(entry) for entry in topic.partitions] == [data]


@pytest.mark.parametrize(
    ("rpc", "result"),
    [
        (INITIALIZE, None),
        (READ, STATE),
        (WRITE, None),
        (DELETE, None),
        (READ_SUMMARY, StateSummary(1, 2, 3, 4)),
        (WRITE, StateError(ErrorCode.FENCED_STATE_EPOCH, "text")),
    ],
)
def test_result_in_a_response(rpc: StateRpc, result: Any) -> None:
    version = 1 if rpc in {WRITE, READ_SUMMARY} else 0
    fields = {"results": [{"topic_id": TOPIC, "partitions": [rpc.result_fields(0, result)]}]}
    frame = encode_response(rpc.key, version, fields)
    assert rpc.results(decode_response(rpc.key, version, frame, 0)) == {A: result}


def test_error_without_a_text_gets_the_usual_one() -> None:
    result = {"partition": 0, "error_code": ErrorCode.NOT_COORDINATOR, "error_message": None}
    fields = {"results": [{"topic_id": TOPIC, "partitions": [result]}]}
    frame = encode_response(DELETE.key, 0, fields)
    expected = state_error(ErrorCode.NOT_COORDINATOR)
    assert DELETE.results(decode_response(DELETE.key, 0, frame, 0)) == {A: expected}
