"""Logins that wait for a thread: order by address, and disconnected peers."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import shake_hands
from tests.support.security.scripted_kerberos import JAAS_LINE, ScriptedAcceptor, log_in_gssapi
from tests.support.tools.waiting import until
from wirebroker.base.clock import next_turn
from wirebroker.base.threads import Work
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.security.sasl.login_queue import LoginQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.broker.server import Server

THREADS = Work.LOGINS.most_threads
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "GSSAPI",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": JAAS_LINE,
}


def unexpected(error: BaseException) -> None:
    raise AssertionError(error)


class Steps:
    def __init__(self) -> None:
        self.made: list[str] = []
        self.may_go_on = threading.Event()

    def call(self, name: str) -> Callable[[], bytes]:
        def step() -> bytes:
            self.made.append(name)
            assert self.may_go_on.wait(60)
            return name.encode()

        return step


async def occupied(line: LoginQueue, steps: Steps) -> list[asyncio.Future[bytes]]:
    first = [line.wait("10.0.0.1", steps.call(f"first {n}"), unexpected) for n in range(THREADS)]
    await until(lambda: len(steps.made) == THREADS)
    return first


async def test_logins_of_one_address_do_not_delay_another() -> None:
    line, steps = LoginQueue(), Steps()
    answers = await occupied(line, steps)
    answers += [line.wait("10.0.0.1", steps.call(f"many {n}"), unexpected) for n in range(50)]
    answers.append(line.wait("10.0.0.2", steps.call("other"), unexpected))
    steps.may_go_on.set()
    assert len(await asyncio.gather(*answers)) == THREADS + 51
    # The first address may have its turn before, and one may be in each other thread.
    assert steps.made.index("other") <= 2 * THREADS


async def test_cancelled_step_is_never_started_and_releases_its_data() -> None:
    line, steps = LoginQueue(), Steps()
    answers = await occupied(line, steps)
    cancelled = [line.wait("10.0.0.1", steps.call(f"left {n}"), unexpected) for n in range(50)]
    last = line.wait("10.0.0.1", steps.call("last"), unexpected)
    for answer in cancelled:
        answer.cancel()
    await next_turn()
    assert [step.call for step in line._waiting._by_address["10.0.0.1"]][:-1] == [None] * 50
    steps.may_go_on.set()
    assert await last == b"last"
    await asyncio.gather(*answers)
    assert len(steps.made) == THREADS + 1


async def test_step_cancelled_while_running_keeps_its_thread_until_it_ends() -> None:
    line, steps = LoginQueue(), Steps()
    for answer in await occupied(line, steps):
        answer.cancel()
    next_one = line.wait("10.0.0.1", steps.call("next"), unexpected)
    await next_turn()
    assert line._running == THREADS
    assert "next" not in steps.made
    steps.may_go_on.set()
    assert await next_one == b"next"


async def test_error_of_a_cancelled_step_is_reported() -> None:
    line, errors = LoginQueue(), []
    may_fail = threading.Event()

    def fail() -> bytes:
        assert may_fail.wait(60)
        raise ValueError("a wrong password")

    answer = line.wait("10.0.0.1", fail, lambda error: errors.append(str(error)))
    await next_turn()
    answer.cancel()
    may_fail.set()
    await until(lambda: errors == ["a wrong password"])


async def test_errors_are_raised_to_the_caller() -> None:
    def fail() -> bytes:
        raise ValueError("no such file")

    line = LoginQueue()
    with pytest.raises(ValueError, match="no such file"):
        await line.wait("10.0.0.1", fail, unexpected)
    assert line._running == 0


@pytest.mark.parametrize("version", [0, 1], ids=["bare messages", "SaslAuthenticate"])
async def test_logins_of_disconnected_clients_are_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    acceptors: list[ScriptedAcceptor] = []

    def acceptor(keys: object) -> ScriptedAcceptor:
        acceptors.append(ScriptedAcceptor(keys))  # type: ignore[arg-type]
        return acceptors[-1]

    def handled_texts() -> list[str]:
        return [text for acceptor in acceptors for text in acceptor.asked]

    monkeypatch.setattr("wirebroker.security.sasl.sasl_state.Acceptor", acceptor)
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as last:
        assert server.reception.table is not None
        staying = [await asking(server, f"?first{n}@TEST.LOCAL", version) for n in range(THREADS)]
        await until(lambda: len(handled_texts()) == THREADS)
        leaving = [await asking(server, f"left{n}@TEST.LOCAL", version) for n in range(20)]
        for client in leaving:
            await client.close()
        # The connections have ended although every thread is still busy.
        await until(lambda: len(server.reception.table or ()) == THREADS + 1)
        for busy_acceptor in acceptors:
            busy_acceptor.may_go_on.set()
        assert (await log_in_gssapi(last, "alice@TEST.LOCAL")).error_code == 0
        assert not [text for text in handled_texts() if text.startswith("left")]
        for client in staying:
            await client.close()


async def asking(server: Server, principal: str, version: int) -> RawClient:
    """Connect and send the first message of a login; the response is not read."""
    client = await RawClient.connect(server.address)
    await shake_hands(client, "GSSAPI", version)
    message = principal.encode()
    if version:
        await client.send(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})
    else:
        client._writer.write(len(message).to_bytes(4) + message)
    return client
