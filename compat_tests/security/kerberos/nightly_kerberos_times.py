"""Expired tickets and messages at both brokers: which logins end and which continue.

The clock skew is one second here instead of five minutes, so that a test only waits seconds for an
expiry.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.security.kerberos.kerberos_broker import (
    SERVICE,
    TICKET,
    first_answer,
    keytab_of,
    run,
)
from tests.support.security import kerberos
from tests.support.tools.ports import HOST
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.security.kerberos.kerberos_broker import Secured

pytestmark = pytest.mark.long

SKEW_S: Final = 1
LIFE_S: Final = 4


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kerberos.Realm]:
    if missing_reason := kerberos.missing():
        pytest.skip(missing_reason)
    folder = tmp_path_factory.mktemp("realm")
    with kerberos.Realm(folder, clock_skew_s=SKEW_S) as running:
        for name in ("alice", SERVICE):
            running.add(name)
        yield running


def with_a_short_ticket(realm: kerberos.Realm, *arguments: str) -> tuple[int, str]:
    """Run Python with a short-lived ticket for alice and no key; return its status and output."""
    cache = realm.kinit("alice", keytab_of(realm, "alice"), "-l", f"{LIFE_S}s")
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **realm.environment(), "KRB5CCNAME": f"FILE:{cache}"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def wait_for_the_end(began_s: float, seconds: float) -> None:
    """Sleep until this much time has passed since a start; the end of a ticket causes no event."""
    time.sleep(max(0.0, began_s + seconds - time.monotonic()))  # see above


def error_of(kerberized: Secured, message: bytes) -> int | None:
    """Return the error in the response to a message; None if the connection is closed."""
    answer = asyncio.run(first_answer(kerberized, message))
    return None if answer is None else int(answer.error_code)


def test_message_older_than_clock_skew_is_rejected(
    kerberized: Secured, realm: kerberos.Realm
) -> None:
    began_s = time.monotonic()
    status, printed = run(realm, "alice", "-c", TICKET, f"kafka@{HOST}")
    assert status == 0, printed
    # A message's time has a resolution of one second.
    wait_for_the_end(began_s, SKEW_S + 3)
    assert error_of(kerberized, bytes.fromhex(printed)) == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_expired_ticket_is_rejected(kerberized: Secured, realm: kerberos.Realm) -> None:
    began_s = time.monotonic()
    status, printed = with_a_short_ticket(realm, "-c", TICKET, f"kafka@{HOST}")
    assert status == 0, printed
    wait_for_the_end(began_s, LIFE_S + SKEW_S + 3)
    assert error_of(kerberized, bytes.fromhex(printed)) == ErrorCode.SASL_AUTHENTICATION_FAILED


# Writes, waits until its ticket expires, writes again, and tries another login.
_BEYOND_THE_TICKET: Final = """
import sys, time, kafka
address, topic, seconds = sys.argv[1:]
def producer():
    return kafka.KafkaProducer(
        bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka", bootstrap_timeout_ms=3000)
first = producer()
print("offset", first.send(topic, b"one").get(timeout=30).offset)
time.sleep(float(seconds))  # the lifetime of a ticket
print("offset", first.send(topic, b"two").get(timeout=30).offset)
try:
    producer()
except BaseException as error:
    print("refused", type(error).__name__, error)
"""


def test_connection_continues_after_its_ticket_expired(
    kerberized: Secured, realm: kerberos.Realm
) -> None:
    address = f"{HOST}:{kerberized.ports['TICKETS']}"
    arguments = (address, new_topic_name(), str(LIFE_S + SKEW_S + 1))
    status, printed = with_a_short_ticket(realm, "-c", _BEYOND_THE_TICKET, *arguments)
    assert status == 0, printed
    assert "offset 0" in printed
    assert "offset 1" in printed
    assert "refused" in printed


def test_client_with_new_ticket_logs_in(kerberized: Secured, realm: kerberos.Realm) -> None:
    for _ in range(2):
        status, printed = with_a_short_ticket(realm, "-c", TICKET, f"kafka@{HOST}")
        assert status == 0, printed
        assert error_of(kerberized, bytes.fromhex(printed)) == 0
