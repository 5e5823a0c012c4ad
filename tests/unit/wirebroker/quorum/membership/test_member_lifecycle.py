"""A member of a remote cluster: registration, heartbeats, shutdown, replacement."""

from __future__ import annotations

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.replicas.memory_peers import SETTINGS, Clock, Peers, seeded
from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.config.rows.row import StartError
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.errors import (
    AuthenticationFailedError,
    CannotConnectError,
    UnsupportedVersionError,
)
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.heartbeats import Heartbeats
from wirebroker.quorum.membership.member_lifecycle import MemberLifecycle, NodeIdTakenError, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 10
PACE = Pace(heartbeat_s=0.01, session_s=0.5, registration_s=2.0, duplicate_s=2.0)


class Quorum:
    """Registers brokers and receives their heartbeats; two threads call it."""

    def __init__(self) -> None:
        self.registrations: list[Any] = []
        self.refusals: list[ErrorCode] = []
        self.is_fenced = True
        self.is_stale = False
        self.error = ErrorCode.NONE
        self.should_shut_down = False
        self.heard = 0
        self.failures: list[Exception] = []
        self.offline: list[bytes] = []
        self.heard_ten_more = threading.Event()
        self._from = 0

    # controller_channel.ControllerChannel

    async def ask(self, key: ApiKey, body: Any) -> Any:
        assert key is ApiKey.BROKER_REGISTRATION
        self.registrations.append(body)
        error_code = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        if error_code is ErrorCode.NONE:
            self.is_stale = False
        return SimpleNamespace(
            error_code=int(error_code), broker_epoch=100 + len(self.registrations)
        )

    # net.client.active_controller.ActiveController

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        assert key is ApiKey.BROKER_HEARTBEAT
        assert timeout_s == PACE.session_s / 2
        self.heard += 1
        if self.failures:
            raise self.failures.pop()
        frame = memoryview(bytearray(encode_request(key, 1, body)))
        self.offline = decode_request(key, 1, frame, 0).offline_log_dirs
        if self.heard >= self._from + 10:
            self.heard_ten_more.set()
        if self.error is not ErrorCode.NONE:
            return _answer(error_code=int(self.error))
        if self.is_stale:
            return _answer(error_code=int(ErrorCode.STALE_BROKER_EPOCH))
        self.is_fenced = body["want_fence"]
        return _answer(
            is_fenced=self.is_fenced,
            should_shut_down=self.should_shut_down and body["want_shut_down"],
        )

    async def close(self) -> None:
        pass

    def wait_for_ten(self) -> bool:
        """Block the caller until ten more heartbeats have come."""
        self._from = self.heard
        self.heard_ten_more.clear()
        return self.heard_ten_more.wait(PATIENCE_S)


def _answer(**fields: Any) -> Any:
    return SimpleNamespace(
        **{"error_code": 0, "is_fenced": True, "should_shut_down": False, **fields}
    )


class Member:
    def __init__(
        self, pace: Pace = PACE, make_controllers: Callable[[], ActiveController] | None = None
    ) -> None:
        self.quorum = Quorum()
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        self.has_leader = True
        quorum: Any = self.quorum
        metadata: Any = SimpleNamespace(image=SimpleNamespace(offset=7, features={}))
        self.lifecycle = MemberLifecycle(
            quorum,
            metadata,
            node_id=2,
            clock=SystemClock(),
            pace=pace,
            make_controllers=make_controllers or (lambda: quorum),
            on_replaced=self.ends.put_nowait,
            has_leader=lambda: self.has_leader,
        )

    async def register(self) -> None:
        await self.lifecycle.register(
            cluster_id="c", endpoints=(), log_directories=(bytes(16),), previous_broker_epoch=5
        )


async def test_heartbeats_continue_while_the_loop_is_busy():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    assert member.lifecycle.broker_epoch == 101
    assert member.quorum.wait_for_ten()  # this holds the loop
    await member.lifecycle.close()
    assert not member.lifecycle.is_fenced


async def test_heartbeats_continue_after_an_internal_error(caplog):
    member = Member()
    member.quorum.failures = [RuntimeError("a mistake")]
    await member.register()
    await member.lifecycle.unfence()
    await member.lifecycle.close()
    assert not member.quorum.failures
    assert "a heartbeat failed" in caplog.text


async def test_repeated_heartbeat_failure_is_logged_once_and_retried_early(caplog):
    caplog.set_level(logging.INFO)
    member = Member(PACE._replace(heartbeat_s=0.3))
    await member.register()
    await member.lifecycle.unfence()
    away = CannotConnectError("c:9093", "it is down")
    member.quorum.failures = [away] * 3
    await until(lambda: "accepts heartbeats again" in caplog.text)
    await member.lifecycle.close()
    assert caplog.text.count("a heartbeat failed, retrying: ") == 1


async def test_heartbeats_without_a_leader_of_the_quorum_are_not_logged(caplog):
    caplog.set_level(logging.INFO)
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.has_leader = False
    member.quorum.failures = [CannotConnectError("c:9093", "it is down")] * 3
    heard = member.quorum.heard
    await until(lambda: member.quorum.heard > heard + 4)
    await member.lifecycle.close()
    assert not member.quorum.failures
    assert "heartbeat" not in caplog.text


async def test_rejected_heartbeat_is_logged_without_a_leader_of_the_quorum(caplog):
    caplog.set_level(logging.INFO)
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.has_leader = False
    member.quorum.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    line = "a heartbeat was rejected with CLUSTER_AUTHORIZATION_FAILED, retrying"
    await until(lambda: line in caplog.messages)
    await member.lifecycle.close()


async def test_denial_by_all_controllers_is_logged_without_a_leader_of_the_quorum(caplog):
    caplog.set_level(logging.INFO)
    addresses = [PeerAddress(f"c{number}", 9093) for number in (1, 2)]
    peers = Peers(*addresses)
    for address in addresses:
        for key in (ApiKey.DESCRIBE_CLUSTER, ApiKey.FETCH):
            peers[address].answers[key] = lambda request: request.answer(
                {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
            )

    def make_controllers() -> ActiveController:
        return ActiveController(
            addresses, dialer=peers, settings=SETTINGS, clock=Clock(), random=seeded()
        )

    member = Member(make_controllers=make_controllers)
    member.has_leader = False
    await member.register()
    unfencing = asyncio.create_task(member.lifecycle.unfence())
    await until(lambda: "a heartbeat failed, retrying: the controller: no" in caplog.text)
    assert "c1:9093: CLUSTER_AUTHORIZATION_FAILED" in caplog.text
    unfencing.cancel()
    await member.lifecycle.close()


@pytest.mark.parametrize("error", [AuthenticationFailedError, UnsupportedVersionError])
async def test_permanent_failure_is_logged_without_a_leader_of_the_quorum(error, caplog):
    caplog.set_level(logging.INFO)
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.has_leader = False
    member.quorum.failures = [error("c:9093", "refused")]
    await until(lambda: "a heartbeat failed, retrying: c:9093: refused" in caplog.messages)
    await member.lifecycle.close()


async def test_failed_heartbeat_is_retried_before_the_interval():
    quorum: Any = Quorum()
    quorum.failures = [CannotConnectError("c:9093", "it is down")] * 3
    heard: list[Any] = []
    heartbeats = Heartbeats(
        lambda: quorum,
        question=lambda: {"want_fence": False},
        on_answer=heard.append,
        interval_s=lambda: 1_000.0,
        most_s=0.01,
        timeout_s=PACE.session_s / 2,
    )
    heartbeats.start()
    await until(lambda: len(heard) == 4)
    await heartbeats.stop()
    assert [isinstance(answer, CannotConnectError) for answer in heard] == [True] * 3 + [False]


async def test_failed_directories_are_reported_to_controllers():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    directories: Any = [
        SimpleNamespace(directory_id=letter * 16, is_online=True) for letter in (b"a", b"b")
    ]
    member.lifecycle.watch_disks(directories)
    heard = member.quorum.heard
    await until(lambda: member.quorum.heard > heard + 1)
    assert member.quorum.offline == []
    directories[1].is_online = False
    await until(lambda: member.quorum.offline == [b"b" * 16])
    await member.lifecycle.close()


async def test_heartbeats_stopped_before_their_thread_starts_send_none(monkeypatch):
    go, run = threading.Event(), Heartbeats._run

    def late(heartbeats: Heartbeats) -> None:
        assert go.wait(PATIENCE_S)
        run(heartbeats)

    monkeypatch.setattr(Heartbeats, "_run", late)
    member = Member()
    await member.register()
    closing = asyncio.create_task(member.lifecycle.close())
    await next_turn()
    go.set()
    await closing
    assert member.quorum.heard == 0


async def test_registration_waits_for_the_previous_incarnation():
    member = Member()
    member.quorum.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.NOT_CONTROLLER]
    await member.register()
    assert len(member.quorum.registrations) == 3
    assert {
        registration["previous_broker_epoch"] for registration in member.quorum.registrations
    } == {5}
    await member.lifecycle.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "a live broker 2"),
        (ErrorCode.REQUEST_TIMED_OUT, "within 0 s"),
        (ErrorCode.UNSUPPORTED_VERSION, "refuses broker 2: UNSUPPORTED_VERSION"),
    ],
)
async def test_registration_refusal_is_one_line(code, words):
    member = Member(PACE._replace(registration_s=0.0, duplicate_s=0.0))
    member.quorum.refusals = [code]
    with pytest.raises(StartError, match=words):
        await member.register()


async def test_chosen_node_id_in_use_fails_without_waiting():
    member = Member(PACE._replace(duplicate_s=0.0))
    member.quorum.refusals = [ErrorCode.NOT_CONTROLLER, ErrorCode.DUPLICATE_BROKER_REGISTRATION]
    with pytest.raises(NodeIdTakenError, match="a live broker 2"):
        await member.register()
    assert len(member.quorum.registrations) == 2


async def test_stale_epoch_makes_the_same_incarnation_register_again():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.quorum.is_stale = True
    await until(lambda: member.lifecycle.broker_epoch == 102)
    first, second = member.quorum.registrations
    assert first["incarnation_id"] == second["incarnation_id"]
    assert second["previous_broker_epoch"] == -1
    await member.lifecycle.close()


async def test_broker_replaced_by_another_process_stops():
    member = Member()
    await member.register()
    member.quorum.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION]
    member.quorum.is_stale = True
    async with asyncio.timeout(PATIENCE_S):
        line = await member.ends.get()
    assert line == "another process has registered as broker 2: this one stops"
    await member.lifecycle.close()


async def test_broker_stops_when_the_controller_allows_it():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.quorum.should_shut_down = True
    await member.lifecycle.shut_down()
    await member.lifecycle.close()
    assert member.quorum.heard >= 2


async def test_shutdown_waits_for_a_silent_quorum_one_session_at_most():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    await member.lifecycle.close()  # no more heartbeats
    with pytest.raises(KafkaError, match="did not approve the shutdown"):
        await member.lifecycle.shut_down()
