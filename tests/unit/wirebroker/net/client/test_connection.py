import asyncio

import pytest

from tests.support.replicas.memory_peers import PEER, SETTINGS, Clock, Peer, turns
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import encode_response
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.errors import (
    AuthenticationFailedError,
    BrokenProtocolError,
    CannotConnectError,
    ConnectionLostError,
    LongResponseError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from wirebroker.net.client.settings import PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer


async def opened(peer, *, clock=None, handshake=None, **settings):
    return await PeerConnection.open(
        PEER,
        dialer=peer,
        settings=SETTINGS._replace(**settings),
        clock=clock or Clock(),
        handshake=handshake,
    )


def heartbeat(connection, generation=0, timeout_s=5.0):
    body = {"group_id": "g", "generation_id": generation}
    return connection.request(ApiKey.HEARTBEAT, body, timeout_s=timeout_s)


def begun(coroutine):
    return asyncio.create_task(coroutine)


# -- versions --


async def test_request_uses_the_highest_common_version():
    peer = Peer()
    peer.versions[ApiKey.HEARTBEAT] = peer.versions[ApiKey.HEARTBEAT]._replace(max_version=3)
    peer.answers[ApiKey.HEARTBEAT] = lambda request: request.answer(
        {"throttle_time_ms": request.version}
    )
    connection = await opened(peer)
    assert (await heartbeat(connection)).throttle_time_ms == 3
    request = peer.link.asked[-1]
    assert (request.client_id, request.body.group_id) == ("tests", "g")
    assert connection.version_of(ApiKey.HEARTBEAT, at_most=1) == 1


async def test_a_body_may_depend_on_the_version():
    peer = Peer()
    peer.answers[ApiKey.HEARTBEAT] = lambda request: request.answer({})
    connection = await opened(peer)
    await connection.request(
        ApiKey.HEARTBEAT, lambda version: {"generation_id": version}, at_most=2
    )
    assert peer.link.asked[-1].body.generation_id == 2


async def test_unsupported_request_is_not_sent():
    peer = Peer()
    del peer.versions[ApiKey.HEARTBEAT]
    connection = await opened(peer)
    with pytest.raises(UnsupportedVersionError, match="no common version of HEARTBEAT") as caught:
        await heartbeat(connection)
    assert not caught.value.may_have_arrived
    assert connection.is_open


async def test_api_versions_is_repeated_in_a_version_the_peer_knows():
    peer = Peer()
    tell = peer.answers[ApiKey.API_VERSIONS]
    peer.versions[ApiKey.API_VERSIONS] = peer.versions[ApiKey.API_VERSIONS]._replace(max_version=2)

    def answer(request):
        if request.version <= 2:
            tell(request)
            return
        api_keys = [{"api_key": 18, "min_version": 0, "max_version": 2}]
        response = {"error_code": 35, "api_keys": api_keys}
        request.answer_bytes(encode_response(ApiKey.API_VERSIONS, 0, response))

    peer.answers[ApiKey.API_VERSIONS] = answer
    connection = await opened(peer)
    assert [sent.version for sent in peer.link.asked] == [5, 2]
    assert connection.version_of(ApiKey.HEARTBEAT) == 4


async def test_api_versions_error_fails_the_connection():
    peer = Peer()
    peer.answers[ApiKey.API_VERSIONS] = lambda request: request.answer({"error_code": 4242})
    with pytest.raises(CannotConnectError, match="failed with error 4242"):
        await opened(peer)
    assert peer.link.is_closed


@pytest.mark.parametrize(
    "address",
    [
        PeerAddress(f"{'x' * 64}.example", 9092),
        PeerAddress("a..b", 9092),
        PeerAddress("a\0b", 9092),
        PeerAddress("127.0.0.1", 65536),
        PeerAddress("127.0.0.1", -1),
    ],
)
async def test_connecting_to_an_invalid_address_fails(address):
    with pytest.raises(CannotConnectError):
        await PeerConnection.open(address, dialer=TcpDialer(), settings=SETTINGS, clock=Clock())


# -- responses --


async def test_requests_are_answered_in_the_order_in_which_they_were_sent():
    peer = Peer()
    connection = await opened(peer)
    tasks = [begun(heartbeat(connection, number)) for number in range(3)]
    await turns()
    for request in peer.link.asked[1:]:
        request.answer({"error_code": request.body.generation_id})
    answers = await asyncio.gather(*tasks)
    assert [answer.error_code for answer in answers] == [0, 1, 2]
    assert connection.in_flight == 0


async def test_requests_in_flight_are_limited():
    peer = Peer()
    connection = await opened(peer, max_in_flight=2)
    tasks = [begun(heartbeat(connection, number)) for number in range(5)]
    answered_count = 0
    while answered_count < 5:
        await turns()
        requests = peer.link.asked[1:]
        assert len(requests) == min(5, answered_count + 2)
        requests[answered_count].answer({})
        answered_count += 1
    await asyncio.gather(*tasks)


async def test_wrong_correlation_id_closes_the_connection():
    peer = Peer()
    connection = await opened(peer)
    first, second = begun(heartbeat(connection)), begun(heartbeat(connection))
    await turns()
    wrong = peer.link.asked[1]
    wrong.answer_bytes(encode_response(ApiKey.HEARTBEAT, 4, {}), correlation_id=77)
    for task in (first, second):
        with pytest.raises(BrokenProtocolError, match="correlation id 77") as caught:
            await task
        assert caught.value.may_have_arrived
    assert not connection.is_open
    assert peer.link.is_closed


async def test_unrequested_response_closes_the_connection():
    peer = Peer()
    connection = await opened(peer)
    peer.link.send((4).to_bytes(4) + bytes(4))
    assert not connection.is_open
    with pytest.raises(ConnectionLostError, match="no request is in flight") as caught:
        await heartbeat(connection)
    assert not caught.value.may_have_arrived


async def test_too_long_response_closes_the_connection():
    peer = Peer()
    connection = await opened(peer, max_response_bytes=10_000)
    task = begun(heartbeat(connection))
    await turns()
    peer.link.send((10_001).to_bytes(4))
    with pytest.raises(LongResponseError, match="invalid response length: 10001 bytes"):
        await task


async def test_malformed_response_body_closes_the_connection():
    peer = Peer()
    peer.answers[ApiKey.HEARTBEAT] = lambda request: request.answer_bytes(b"\x00")
    connection = await opened(peer)
    with pytest.raises(BrokenProtocolError, match="HeartbeatResponse"):
        await heartbeat(connection)
    assert not connection.is_open


async def test_records_of_a_response_are_views_that_stay_unchanged():
    peer = Peer()
    records = bytes(range(256)) * 1000

    def answer(request):
        offset = request.body.topics[0].partitions[0].fetch_offset
        partition = {"partition_index": 0, "records": bytes([offset]) + records}
        request.answer({"responses": [{"partitions": [partition]}]})

    peer.answers[ApiKey.FETCH] = answer
    connection = await opened(peer)
    views = []
    for offset in range(12):
        topics = [{"partitions": [{"fetch_offset": offset}]}]
        response = await connection.request(ApiKey.FETCH, {"topics": topics})
        views.append(response.responses[0].partitions[0].records)
    assert {type(view) for view in views} == {memoryview}
    assert [bytes(view) for view in views] == [bytes([number]) + records for number in range(12)]


async def test_long_response_without_records_is_decoded_in_a_thread():
    peer = Peer()
    topics = [{"name": f"topic-{number:05}"} for number in range(5000)]
    peer.answers[ApiKey.METADATA] = lambda request: request.answer({"topics": topics})
    connection = await opened(peer)
    answer = await connection.request(ApiKey.METADATA, {"topics": None})
    assert [topic.name for topic in answer.topics] == [topic["name"] for topic in topics]


# -- deadlines and cancellation --


async def test_exceeded_deadline_closes_the_connection():
    peer = Peer()
    connection = await opened(peer)
    slow, other = begun(heartbeat(connection, timeout_s=0.01)), begun(heartbeat(connection))
    with pytest.raises(RequestTimedOutError, match="no response to HEARTBEAT") as caught:
        await slow
    assert caught.value.may_have_arrived
    with pytest.raises(ConnectionLostError, match="no response to HEARTBEAT"):
        await other
    assert peer.link.is_closed


async def test_deadline_includes_the_wait_for_a_slot():
    peer = Peer()
    connection = await opened(peer, max_in_flight=1)
    first = begun(heartbeat(connection))
    await turns()
    with pytest.raises(RequestTimedOutError, match="timed out while 1 others") as caught:
        await heartbeat(connection, timeout_s=0.01)
    assert not caught.value.may_have_arrived
    assert connection.is_open
    peer.link.asked[-1].answer({})
    await first


async def test_request_without_time_left_is_not_sent():
    peer = Peer()
    connection = await opened(peer)
    with pytest.raises(RequestTimedOutError, match="no time left") as caught:
        await heartbeat(connection, timeout_s=0)
    assert not caught.value.may_have_arrived
    assert connection.is_open
    assert len(peer.link.asked) == 1


async def test_earlier_deadline_after_a_later_one_is_enforced():
    peer = Peer()
    connection = await opened(peer)
    patient = begun(heartbeat(connection, timeout_s=100))
    await turns()
    with pytest.raises(RequestTimedOutError):
        await heartbeat(connection, timeout_s=0.01)
    with pytest.raises(ConnectionLostError):
        await patient


async def test_cancelled_request_does_not_affect_others():
    peer = Peer()
    connection = await opened(peer, max_in_flight=2)
    tasks = [begun(heartbeat(connection, number)) for number in range(4)]
    await turns()
    sent, waiting = tasks[0], tasks[2]
    sent.cancel()
    waiting.cancel()
    await turns()
    assert connection.in_flight == 2, "a sent request keeps its place until its response"
    index = 1  # the first request is ApiVersions
    while connection.in_flight:
        request = peer.link.asked[index]
        request.answer({"error_code": request.body.generation_id})
        index += 1
        await turns()
    assert [(await tasks[number]).error_code for number in (1, 3)] == [1, 3]
    assert sent.cancelled()
    assert waiting.cancelled()
    assert [request.body.generation_id for request in peer.link.asked[1:]] == [0, 1, 3]


# -- the end --


async def test_lost_connection_fails_all_requests_with_the_reason():
    peer = Peer()
    connection = await opened(peer, max_in_flight=1)
    sent, waiting = begun(heartbeat(connection)), begun(heartbeat(connection))
    await turns()
    peer.link.drop(ConnectionResetError("reset by peer"))
    with pytest.raises(ConnectionLostError, match="reset by peer") as caught:
        await sent
    assert caught.value.may_have_arrived
    with pytest.raises(ConnectionLostError, match="reset by peer") as caught:
        await waiting
    assert not caught.value.may_have_arrived


async def test_close_waits_for_pending_responses():
    peer = Peer()
    connection = await opened(peer)
    request = begun(heartbeat(connection))
    await turns()
    closing = begun(connection.close())
    await turns()
    assert not closing.done()
    with pytest.raises(ConnectionLostError, match="closed by us"):
        await heartbeat(connection)
    peer.link.asked[-1].answer({"error_code": 5})
    assert (await request).error_code == 5
    await closing
    assert peer.link.is_closed


async def test_close_stops_waiting_after_its_timeout():
    connection = await opened(Peer())
    request = begun(heartbeat(connection))
    await turns()
    await connection.close(0.01)
    with pytest.raises(ConnectionLostError, match="closed by us"):
        await request
    await connection.close()


# -- connecting --


async def test_refused_connection_is_reported():
    peer = Peer()
    peer.refuses = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(CannotConnectError, match="peer:9092: connection refused") as caught:
        await opened(peer)
    assert not caught.value.may_have_arrived


async def test_hanging_dial_times_out():
    peer = Peer()
    peer.hangs = True
    with pytest.raises(CannotConnectError, match=r"no connection within 0\.01 s"):
        await opened(peer, connect_timeout_s=0.01)


async def test_silent_peer_times_out():
    peer = Peer()
    peer.answers.clear()
    with pytest.raises(CannotConnectError, match=r"no connection within 0\.01 s"):
        await opened(peer, connect_timeout_s=0.01)
    assert peer.link.is_closed


async def test_cancelled_open_leaves_no_connection():
    peer = Peer()
    peer.answers.clear()
    opening = begun(opened(peer))
    await turns()
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()
    assert peer.link.is_closed


async def test_a_peer_that_closes_at_once_is_not_connected():
    peer = Peer()
    peer.answers[ApiKey.API_VERSIONS] = lambda request: request.link.drop()
    with pytest.raises(CannotConnectError, match="the peer closed the connection"):
        await opened(peer)


async def test_connection_ending_while_dialed_is_reported():
    class Hasty(Peer):
        async def dial(self, host, port, receiver):
            link = await super().dial(host, port, receiver)
            receiver.lost(ConnectionResetError("reset"))
            return link

    with pytest.raises(CannotConnectError, match="the connection was lost: reset"):
        await opened(Hasty())


async def test_handshake_follows_api_versions_before_other_requests():
    peer = Peer()
    peer.answers[ApiKey.SASL_HANDSHAKE] = lambda request: request.answer({"mechanisms": ["PLAIN"]})
    peer.answers[ApiKey.SASL_AUTHENTICATE] = lambda request: request.answer({})

    async def plain(connection):
        await connection.request(ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"})
        await connection.request(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b"\0me\0secret"})

    await opened(peer, handshake=plain)
    keys = [request.key.name for request in peer.link.asked]
    assert keys == ["API_VERSIONS", "SASL_HANDSHAKE", "SASL_AUTHENTICATE"]


async def test_refused_handshake_is_a_distinct_error():
    peer = Peer()

    async def refused(connection):
        raise AuthenticationFailedError(str(connection.address), "wrong password")

    with pytest.raises(AuthenticationFailedError, match="peer:9092: wrong password"):
        await opened(peer, handshake=refused)
    assert peer.link.is_closed
