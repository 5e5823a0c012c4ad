"""The console's names, its cookie, and the address of a request's client."""

from __future__ import annotations

import pytest

from tests.support.console.requests import scope_of
from wirebroker.console.web.site_address import SiteAddress
from wirebroker.console.web_settings import WebSettings


@pytest.mark.parametrize(
    ("settings", "served", "refused"),
    [
        (WebSettings(), "localhost", "kafka.example"),
        (WebSettings(allowed_hosts=("Kafka.Example",)), "kafka.example", "other.example"),
        (WebSettings(host="10.1.2.3"), "10.1.2.3", "localhost"),
        (WebSettings(host="0.0.0.0", allowed_hosts=("a.example",)), "a.example", "0.0.0.0"),
        (WebSettings(host="2001:db8::1"), "2001:db8::1", "::1"),
    ],
)
def test_hosts_are_served_by_the_settings(settings, served, refused):
    site = SiteAddress.of(settings)
    assert site.is_served(served)
    assert not site.is_served(refused)


def test_the_cookie_is_bound_to_the_host_by_its_name():
    scope = scope_of("GET", "/", {})
    assert SiteAddress(is_secure=True).cookie_name(scope) == "__Host-wirebroker-console"
    assert SiteAddress().cookie_name(scope) == "wirebroker-console-8989"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (None, "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("10.9.9.9, 192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, evil", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("2001:db8::7", "2001:db8::7"),
    ],
)
def test_behind_a_proxy_the_last_hop_is_the_client(forwarded, client):
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    scope = scope_of("GET", "/", headers)
    assert SiteAddress(is_behind_proxy=True).client_of(scope) == client
    assert SiteAddress().client_of(scope) == "127.0.0.1"
