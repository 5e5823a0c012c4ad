"""Fixtures: brokers in a realm, and brokers of several listeners, one of each for a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.security.kerberos.kerberos_broker import kerberos_broker
from compat_tests.security.listeners import guarded_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.security.kerberos.kerberos_broker import Secured
    from compat_tests.security.listeners import Guarded
    from tests.support.security import kerberos


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def kerberized(
    request: pytest.FixtureRequest,
    realm: kerberos.Realm,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    """Run a broker whose clients log in with the tickets of the module's realm."""
    with kerberos_broker(request.param, realm, tmp_path_factory.mktemp("kerberized")) as running:
        yield running


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.long])],
)
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    """Run a broker that knows alice; what its clients are to believe is `authority.pem`."""
    with guarded_broker(request.param, tmp_path_factory) as running:
        yield running
