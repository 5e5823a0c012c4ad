"""A fixture: a broker with several listeners, one for each module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.security.listeners import guarded_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.security.listeners import Guarded


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    """Run a broker with the user alice; `authority.pem` is the CA for its clients."""
    with guarded_broker(request.param, tmp_path_factory) as running:
        yield running
