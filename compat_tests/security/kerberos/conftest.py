"""A fixture: a broker in a Kerberos realm, one for each module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.security.kerberos.kerberos_broker import kerberos_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.security.kerberos.kerberos_broker import Secured
    from tests.support.security import kerberos


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def kerberized(
    request: pytest.FixtureRequest,
    realm: kerberos.Realm,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    with kerberos_broker(request.param, realm, tmp_path_factory.mktemp("kerberized")) as running:
        yield running
