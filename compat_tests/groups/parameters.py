"""Clients as test parameters, each with its marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.groups.clients import (
    CLIENTS,
    FRANZ_GO,
    JAVA,
    KCAT,
    RUST_RDKAFKA,
    SARAMA,
    GroupClient,
)
from compat_tests.support import tools_rust

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


_NIGHTLY = [pytest.mark.nightly]


def clients(chosen: Iterable[GroupClient], *, quick: Collection[GroupClient]) -> list[Any]:
    """Return these clients; the quick ones run with each change, the others nightly."""
    return [
        pytest.param(
            client, id=str(client), marks=_marks(client, [] if client in quick else _NIGHTLY)
        )
        for client in chosen
    ]


def clients_and_assignors() -> list[Any]:
    """Return each client with each of its assignors; all but its first ones run nightly."""
    return [
        pytest.param(
            client,
            assignor,
            id=f"{client}-{assignor}",
            marks=_marks(client, _run_of(client, assignor)),
        )
        for client in CLIENTS
        for assignor in (*client.assignors, *client.broker_assignors)
    ]


def _run_of(client: GroupClient, assignor: str) -> list[pytest.MarkDecorator]:
    first = {*client.broker_assignors[:1]}
    if client is not JAVA:  # its classic members are in the other tests here
        first.add(client.assignors[0])
    return [] if assignor in first else _NIGHTLY


def _marks(client: GroupClient, run: list[pytest.MarkDecorator]) -> list[pytest.MarkDecorator]:
    marks: list[pytest.MarkDecorator] = []
    if client is JAVA:
        marks.append(pytest.mark.java)
    if client is RUST_RDKAFKA:
        reason = "needs cargo, a C compiler and make on PATH"
        marks.append(pytest.mark.skipif(not tools_rust.is_here(), reason=reason))
        run = _NIGHTLY  # its build takes over a minute
    if client in (FRANZ_GO, SARAMA):
        run = _NIGHTLY  # likewise, on a busy machine
    if client is KCAT:
        run = _NIGHTLY  # it is librdkafka, as confluent-kafka is
    return [*marks, *run]
