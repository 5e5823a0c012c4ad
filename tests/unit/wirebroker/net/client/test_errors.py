"""The reasons of failed connections, for log lines and messages."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import pytest

from wirebroker.net.client.errors import reason_of, seconds_of

REFUSED = "[Errno 111] Connect call failed"
UNAVAILABLE = "[Errno 99] Connect call failed"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)"), "connection refused"),
        (OSError(f"Multiple exceptions: {REFUSED} ('::1', 9), {REFUSED}"), "connection refused"),
        (
            OSError(f"Multiple exceptions: {UNAVAILABLE} ('::1', 9), {REFUSED}"),
            "connection refused",
        ),
        (OSError(f"Multiple exceptions: {UNAVAILABLE}, {UNAVAILABLE}"), os.strerror(99).lower()),
        (OSError(113, "Connect call failed ('10.0.0.1', 9)"), "no route to host"),
        (
            ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)),
            "connection reset by peer",
        ),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLEOFError(8, "EOF occurred in violation"), "EOF occurred in violation"),
        (ConnectionError("the TLS handshake failed: x"), "the TLS handshake failed: x"),
        (ValueError("SASL failed"), "SASL failed"),
        (TimeoutError(), ""),
    ],
)
def test_reason_has_neither_the_address_nor_a_number(fault: Exception, reason: str) -> None:
    assert reason_of(fault) == reason


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-1.0, "0.01 s"),
        (0.0, "0.01 s"),
        (0.123456, "0.12 s"),
        (2.5, "2.5 s"),
        (9.99, "10 s"),
        (10.4, "10 s"),
        (120.0, "120 s"),
    ],
)
def test_timeout_in_a_message(duration_s: float, text: str) -> None:
    assert seconds_of(duration_s) == text
