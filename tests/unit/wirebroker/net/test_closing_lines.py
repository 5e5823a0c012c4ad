"""Log lines about a connection whose file cannot be sent."""

from __future__ import annotations

import errno
import logging
import os

import pytest

from wirebroker.net.closing_lines import say_lost
from wirebroker.net.slice_error import SliceError
from wirebroker.request.session import Session

SESSION = Session(connection_id="1", peer="p:1", listener_name="l", local_host="h", local_port=1)


@pytest.mark.parametrize(
    ("number", "level", "said"),
    [
        (errno.ENOENT, logging.INFO, "/t-0/0.log no longer exists"),
        (errno.EIO, logging.ERROR, "cannot send /t-0/0.log: [Errno 5] Input/output error"),
    ],
)
def test_deleted_file_is_not_logged_as_a_disk_error(
    caplog: pytest.LogCaptureFixture, number: int, level: int, said: str
) -> None:
    caplog.set_level(logging.INFO, "wirebroker.net")
    say_lost(SESSION, SliceError("/t-0/0.log", OSError(number, os.strerror(number))))
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (level, f"closing p:1 on l: {said}")
    ]
