from __future__ import annotations

import pytest

from wirebroker.console.web.address import AddressError, checked_host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_addresses_can_be_listened_on(host):
    assert checked_host(host) == host


def test_localhost_is_the_loopback_address():
    assert checked_host("localhost") == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.1.2.3", "box.example", "127.0.0.1:80"])
def test_other_addresses_are_refused_with_a_way_out(host):
    with pytest.raises(AddressError, match=r"no login yet.*SSH tunnel"):
        checked_host(host)
