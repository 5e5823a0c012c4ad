from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.login import sessions as sessions_module
from wirebroker.console.login.sessions import IDLE_S, LONGEST_S, LoginSessions


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock) -> LoginSessions:
    return LoginSessions(clock)


def test_a_session_belongs_to_its_id(sessions):
    first, second = sessions.begin("anna", "h"), sessions.begin("bert", "h")
    assert first != second
    assert len(first) == 43
    assert sessions.get(first, is_used=True).user == "anna"
    assert sessions.get("x" * 43, is_used=True) is None
    assert sessions.get("\udcff", is_used=True) is None


def test_an_idle_session_ends(sessions, clock):
    session_id = sessions.begin("anna", "h")
    session = sessions.get(session_id, is_used=True)
    clock.passed_ms += int(IDLE_S * 1000) - 1
    assert sessions.get(session_id, is_used=False) is session
    clock.passed_ms += 1
    assert sessions.get(session_id, is_used=True) is None
    assert session.ended.is_set()


def test_a_used_session_ends_after_its_longest_time(sessions, clock):
    session_id = sessions.begin("anna", "h")
    steps = int(LONGEST_S / IDLE_S * 2)
    for _ in range(steps - 1):
        clock.passed_ms += int(IDLE_S * 500)
        assert sessions.get(session_id, is_used=True) is not None
    clock.passed_ms += int(IDLE_S * 500)
    assert sessions.get(session_id, is_used=True) is None


def test_an_ended_session_is_gone(sessions):
    session_id = sessions.begin("anna", "h")
    sessions.end(session_id)
    sessions.end(session_id)
    assert sessions.get(session_id, is_used=True) is None


def test_sessions_are_bounded_by_user_and_in_total(sessions, monkeypatch):
    monkeypatch.setattr(sessions_module, "_MOST", 25)
    ids = [sessions.begin("anna", "h") for _ in range(21)]
    assert sessions.get(ids[0], is_used=True) is None
    assert sessions.get(ids[1], is_used=True) is not None
    others = [sessions.begin(f"user-{number}", "h") for number in range(10)]
    alive = [session_id for session_id in ids if sessions.get(session_id, is_used=False)]
    assert len(alive) == 15
    assert ids[1] in alive  # used last
    assert all(sessions.get(session_id, is_used=False) for session_id in others)
