"""Clients as test parameters, each with its marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.groups.clients import (
    CLIENTS,
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    RUST_RDKAFKA,
    SARAMA,
    GroupClient,
)
from compat_tests.support import tools_rust

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


_LONG, _NIGHTLY = [pytest.mark.long], [pytest.mark.nightly]
# Clients whose other assignors are tested with each change; the others' are tested nightly.
_WITH_ALL_ASSIGNORS = (CONFLUENT, KAFKA_PYTHON, JAVA)


def clients(chosen: Iterable[GroupClient], *, quick: Collection[GroupClient]) -> list[Any]:
    """Return these clients; only the quick ones run by default."""
    return [
        pytest.param(client, id=str(client), marks=_marks(client, [] if client in quick else _LONG))
        for client in chosen
    ]


def clients_and_assignors() -> list[Any]:
    """Return each client with each of its assignors; quick runs use its first."""
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
    if assignor in {client.assignors[0], *client.broker_assignors[:1]}:
        return []
    if assignor in client.broker_assignors:
        return _NIGHTLY
    return _LONG if client in _WITH_ALL_ASSIGNORS else _NIGHTLY


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
    return [*marks, *run]
