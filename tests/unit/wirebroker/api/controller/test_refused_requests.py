"""Log lines about requests between voters that are refused."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.api.controller.refused_requests import log_refusal
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


def lines(caplog: pytest.LogCaptureFixture, body: dict[str, Any]) -> list[str]:
    session = SimpleNamespace(peer="10.0.0.9:5000", listener_name="CONTROLLER")
    request: Any = SimpleNamespace(key=ApiKey.VOTE, session=session)
    with caplog.at_level(logging.INFO):
        log_refusal(request, body)
    assert all(record.__dict__["about"] == "10.0.0.9 on CONTROLLER" for record in caplog.records)
    return caplog.messages


@pytest.mark.parametrize(
    "body",
    [
        {"error_code": ErrorCode.INVALID_REQUEST},
        {"topics": [{"partitions": [{"error_code": ErrorCode.INVALID_REQUEST}]}]},
        {"responses": [{"partitions": [{"error_code": ErrorCode.INVALID_REQUEST}]}]},
    ],
)
def test_refused_request_is_logged_with_its_sender(caplog, body) -> None:
    assert lines(caplog, body) == [
        "refused VOTE from 10.0.0.9:5000 on CONTROLLER with INVALID_REQUEST: it breaks the"
        " protocol: restrict access to this listener"
    ]


@pytest.mark.parametrize(
    ("error", "level", "reason"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "WARNING", "it belongs to another cluster"),
        (ErrorCode.INVALID_VOTER_KEY, "WARNING", "it is for a voter with another id or directory"),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, "INFO", "its epoch is later than the one known here"),
    ],
)
def test_request_of_a_stranger_is_logged(caplog, error, level, reason) -> None:
    (line,) = lines(caplog, {"error_code": error})
    assert f"from 10.0.0.9:5000 on CONTROLLER with {error.name}: {reason}" in line
    assert [record.levelname for record in caplog.records] == [level]


@pytest.mark.parametrize(
    "error",
    [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER],
)
def test_what_sound_replicas_cause_is_not_logged(caplog, error) -> None:
    assert not lines(caplog, {"topics": [{"partitions": [{"error_code": error}]}]})
