import asyncio

import pytest

from tests.support.replicas.memory_peers import (
    PEER,
    SETTINGS,
    Clock,
    Peer,
    seeded,
    turns,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.errors import CannotConnectError, ConnectionLostError
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import Backoff


def node_of(peer, *, clock=None, **settings):
    return Node(
        PEER,
        dialer=peer,
        settings=SETTINGS._replace(**settings),
        clock=clock or Clock(),
        random=seeded(),
    )


def answering_peer():
    peer = Peer()
    peer.answers[ApiKey.HEARTBEAT] = lambda request: request.answer({"error_code": 0})
    return peer


def heartbeat(node, timeout_s=5.0):
    return node.request(ApiKey.HEARTBEAT, {}, timeout_s=timeout_s)


async def test_node_connects_at_the_first_request_and_stays_connected():
    peer = answering_peer()
    node = node_of(peer)
    assert peer.dials == 0
    for _ in range(3):
        await heartbeat(node)
    assert peer.dials == 1
    await node.close()
    assert peer.link.is_closed


async def test_concurrent_requests_share_one_connection_attempt():
    peer = answering_peer()
    node = node_of(peer)
    await asyncio.gather(*(heartbeat(node) for _ in range(8)))
    assert peer.dials == 1
    await node.close()


async def test_cancelling_the_first_request_keeps_the_attempt():
    peer = answering_peer()
    node = node_of(peer)
    first = asyncio.create_task(heartbeat(node))
    await turns(1)
    second = asyncio.create_task(heartbeat(node))
    await turns(1)
    first.cancel()
    await second
    assert peer.dials == 1
    await node.close()


async def test_node_reconnects_after_a_lost_connection():
    peer = answering_peer()
    node = node_of(peer)
    await heartbeat(node)
    peer.link.drop()
    await turns()
    assert not node.is_connected
    await heartbeat(node)
    assert peer.dials == 2
    await node.close()


async def test_a_request_is_tried_once():
    peer = answering_peer()
    node = node_of(peer)
    peer.answers[ApiKey.HEARTBEAT] = lambda request: request.link.drop()
    with pytest.raises(ConnectionLostError):
        await heartbeat(node)
    assert peer.dials == 1
    await node.close()


async def test_failures_are_reported_at_once_and_next_attempt_waits():
    peer = answering_peer()
    peer.refuses = ConnectionRefusedError(111, "refused")
    node = node_of(peer, reconnect=Backoff(first_s=0.03, most_s=0.03, jitter=0))
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for failures in (1, 2, 3):
        with pytest.raises(CannotConnectError, match="refused"):
            await heartbeat(node)
        assert node.failures == failures
    assert loop.time() - begin >= 0.06
    peer.refuses = None
    await heartbeat(node)
    assert node.failures == 0
    assert peer.dials == 4
    await node.close()


async def test_timeout_within_the_backoff_reports_its_cause():
    peer = answering_peer()
    peer.refuses = ConnectionRefusedError(111, "refused")
    node = node_of(peer, reconnect=Backoff(first_s=100, most_s=100))
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for _ in range(3):
        with pytest.raises(CannotConnectError, match="refused"):
            await heartbeat(node, 0.02)
    assert loop.time() - begin >= 0.04  # the first failed immediately
    assert peer.dials == 1
    await node.close()


async def test_deadline_includes_connecting():
    peer = answering_peer()
    peer.hangs = True
    node = node_of(peer)
    with pytest.raises(CannotConnectError, match=r"not connected within 0\.01 s"):
        await heartbeat(node, timeout_s=0.01)
    await node.close()


async def test_idle_connection_is_replaced():
    peer, clock = answering_peer(), Clock()
    node = node_of(peer, clock=clock, idle_s=100)
    await heartbeat(node)
    clock.ahead_s = 99
    await heartbeat(node)
    assert peer.dials == 1
    clock.ahead_s = 200
    await heartbeat(node)
    assert peer.dials == 2
    assert peer.links[0].is_closed
    await node.close()


async def test_closed_node_does_not_connect():
    peer = answering_peer()
    node = node_of(peer)
    await heartbeat(node)
    await node.close()
    with pytest.raises(CannotConnectError, match="closed by us"):
        await heartbeat(node)


@pytest.mark.parametrize("is_gentle", [True, False])
async def test_close_cancels_a_connection_attempt(is_gentle):
    peer = answering_peer()
    peer.hangs = True
    node = node_of(peer)
    waiting = asyncio.create_task(heartbeat(node))
    await turns()
    if is_gentle:
        await node.close()
    else:
        node.abort()
    with pytest.raises(CannotConnectError, match="closed by us"):
        await waiting


async def test_abort_closes_the_connection_at_once():
    peer = answering_peer()
    del peer.answers[ApiKey.HEARTBEAT]
    node = node_of(peer)
    waiting = asyncio.create_task(heartbeat(node))
    await turns()
    node.abort()
    with pytest.raises(ConnectionLostError, match="closed by us"):
        await waiting
    assert peer.link.is_closed
