"""A member of a remote cluster: registration, heartbeats, shutdown, replacement."""

from __future__ import annotations

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.config.rows.row import StartError
from wirebroker.net.client.errors import CannotConnectError
from wirebroker.quorum.membership.heartbeats import Heartbeats
from wirebroker.quorum.membership.member_lifecycle import MemberLifecycle, NodeIdTakenError, Pace

PATIENCE_S = 10
PACE = Pace(heartbeat_s=0.01, session_s=0.5, registration_s=2.0, duplicate_s=2.0)


class Quorum:
    """Registers brokers and receives their heartbeats; two threads call it."""

    def __init__(self) -> None:
        self.registrations: list[Any] = []
        self.refusals: list[ErrorCode] = []
        self.is_fenced = True
        self.is_stale = False
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
    def __init__(self, pace: Pace = PACE) -> None:
        self.quorum = Quorum()
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        quorum: Any = self.quorum
        metadata: Any = SimpleNamespace(image=SimpleNamespace(offset=7, features={}))
        self.lifecycle = MemberLifecycle(
            quorum,
            metadata,
            node_id=2,
            clock=SystemClock(),
            pace=pace,
            make_controllers=lambda: quorum,
            on_replaced=self.ends.put_nowait,
        )

    async def register(self) -> None:
        await self.lifecycle.register(
            cluster_id="c", endpoints=(), log_directories=(bytes(16),), previous_broker_epoch=5
        )


async def test_heartbeats_go_on_while_the_loop_is_busy():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    assert member.lifecycle.broker_epoch == 101
    assert member.quorum.wait_for_ten()  # this holds the loop
    await member.lifecycle.close()
    assert not member.lifecycle.is_fenced


async def test_a_heartbeat_that_fails_for_a_reason_of_our_own_is_not_the_last(caplog):
    member = Member()
    member.quorum.failures = [RuntimeError("a mistake")]
    await member.register()
    await member.lifecycle.unfence()
    await member.lifecycle.close()
    assert not member.quorum.failures
    assert "a heartbeat failed" in caplog.text


async def test_heartbeats_that_fail_alike_are_one_line_and_come_again_before_their_time(caplog):
    caplog.set_level(logging.INFO)
    member = Member(PACE._replace(heartbeat_s=0.3))
    await member.register()
    await member.lifecycle.unfence()
    away = CannotConnectError("c:9093", "it is down")
    member.quorum.failures = [away] * 3
    await until(lambda: "takes heartbeats again" in caplog.text)
    await member.lifecycle.close()
    assert caplog.text.count("a heartbeat is not answered: ") == 1


async def test_a_heartbeat_after_one_that_failed_does_not_wait_for_its_turn():
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
    assert [isinstance(each, CannotConnectError) for each in heard] == [True] * 3 + [False]


async def test_controllers_are_told_of_the_directories_that_have_failed():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    directories: Any = [
        SimpleNamespace(directory_id=each * 16, is_online=True) for each in (b"a", b"b")
    ]
    member.lifecycle.watch_disks(directories)
    heard = member.quorum.heard
    await until(lambda: member.quorum.heard > heard + 1)
    assert member.quorum.offline == []
    directories[1].is_online = False
    await until(lambda: member.quorum.offline == [b"b" * 16])
    await member.lifecycle.close()


async def test_heartbeats_that_end_before_their_thread_has_begun_are_none(monkeypatch):
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


async def test_an_incarnation_before_is_waited_for():
    member = Member()
    member.quorum.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.NOT_CONTROLLER]
    await member.register()
    assert len(member.quorum.registrations) == 3
    assert {each["previous_broker_epoch"] for each in member.quorum.registrations} == {5}
    await member.lifecycle.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "that is alive"),
        (ErrorCode.REQUEST_TIMED_OUT, "within 0 s"),
        (ErrorCode.UNSUPPORTED_VERSION, "refuses broker 2: UNSUPPORTED_VERSION"),
    ],
)
async def test_a_refusal_is_said_in_one_line(code, words):
    member = Member(PACE._replace(registration_s=0.0, duplicate_s=0.0))
    member.quorum.refusals = [code]
    with pytest.raises(StartError, match=words):
        await member.register()


async def test_whose_id_was_chosen_waits_for_a_controller_but_for_nobody_of_the_same_id():
    member = Member(PACE._replace(duplicate_s=0.0))
    member.quorum.refusals = [ErrorCode.NOT_CONTROLLER, ErrorCode.DUPLICATE_BROKER_REGISTRATION]
    with pytest.raises(NodeIdTakenError, match="that is alive"):
        await member.register()
    assert len(member.quorum.registrations) == 2


async def test_a_stale_epoch_is_registered_again_by_the_same_incarnation():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.quorum.is_stale = True
    await until(lambda: member.lifecycle.broker_epoch == 102)
    first, second = member.quorum.registrations
    assert first["incarnation_id"] == second["incarnation_id"]
    assert second["previous_broker_epoch"] == -1
    await member.lifecycle.close()


async def test_who_is_replaced_by_another_process_ends():
    member = Member()
    await member.register()
    member.quorum.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION]
    member.quorum.is_stale = True
    async with asyncio.timeout(PATIENCE_S):
        line = await member.ends.get()
    assert line == "another process has registered as broker 2: this one ends"
    await member.lifecycle.close()


async def test_it_stops_when_it_is_let_go():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    member.quorum.should_shut_down = True
    await member.lifecycle.shut_down()
    await member.lifecycle.close()
    assert member.quorum.heard >= 2


async def test_a_quorum_that_is_silent_is_not_waited_for_longer_than_a_session():
    member = Member()
    await member.register()
    await member.lifecycle.unfence()
    await member.lifecycle.close()  # no more heartbeats
    with pytest.raises(KafkaError, match="have not let this broker go"):
        await member.lifecycle.shut_down()
