"""Clients as parameters of tests, each with the marks that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests import tools_rust
from compat_tests.groups.clients import CLIENTS, JAVA, RUST_RDKAFKA, GroupClient

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def clients(chosen: Iterable[GroupClient], *, quick: Collection[GroupClient]) -> list[Any]:
    """Return these clients; all but the quick ones are for long runs."""
    return [
        pytest.param(client, id=str(client), marks=_marks(client, is_quick=client in quick))
        for client in chosen
    ]


def clients_and_assignors() -> list[Any]:
    """Return each client with each of its assignors; only its first is for the quick run."""
    return [
        pytest.param(
            client,
            one,
            id=f"{client}-{one}",
            marks=_marks(client, is_quick=one == client.assignors[0]),
        )
        for client in CLIENTS
        for one in client.assignors
    ]


def _marks(client: GroupClient, *, is_quick: bool) -> list[pytest.MarkDecorator]:
    marks: list[pytest.MarkDecorator] = []
    if client is JAVA:
        marks.append(pytest.mark.java)
    if client is RUST_RDKAFKA:
        reason = "needs cargo, a C compiler and make on PATH"
        marks.append(pytest.mark.skipif(not tools_rust.is_here(), reason=reason))
    if client is RUST_RDKAFKA or not is_quick:  # its build takes a minute and more
        marks.append(pytest.mark.long)
    return marks
