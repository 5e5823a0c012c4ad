"""Start messages about listeners and data, and their warnings."""

from __future__ import annotations

import pytest

from wirebroker.base.addresses import is_loopback
from wirebroker.config.listeners.listeners import Address
from wirebroker.net.listeners.ready_lines import (
    BoundListener,
    open_warning,
    ready_lines,
)

_HERE = BoundListener("PLAINTEXT", "127.0.0.1", 9092, None)
_EVERYWHERE = BoundListener("PLAINTEXT", "::", 9092, None)


def said(*bound: BoundListener, directories: tuple[str, ...] = ("/data",)) -> list[str]:
    return ready_lines(bound, node_id=1, cluster_id="MkU3", directories=directories, machine="box")


def test_one_listener_on_one_address_takes_one_line():
    assert said(_HERE) == [
        "wirebroker ready on 127.0.0.1:9092 (node 1, cluster MkU3)",
        "  data: /data",
    ]


def test_wildcard_listener_line_shows_where_to_connect():
    first, second, _ = said(_EVERYWHERE)
    assert first == "wirebroker ready on [::]:9092 (node 1, cluster MkU3)"
    assert second == (
        "  PLAINTEXT: every interface, port 9092; "
        "connect to 127.0.0.1:9092 here, box:9092 from elsewhere"
    )
    assert "every IPv4 interface, port 9092;" in said(_EVERYWHERE._replace(host="0.0.0.0"))[1]


def test_all_listeners_and_directories_are_printed():
    inside = BoundListener("INSIDE", "127.0.0.1", 9092, None)
    outside = BoundListener("OUTSIDE", "::1", 9094, Address("kafka.example.org", 443))
    free = BoundListener("FREE", "10.0.0.5", 40_001, Address("kafka.example.org", 0))
    assert said(inside, outside, free, directories=("/a", "/b"))[1:] == [
        "  INSIDE: 127.0.0.1:9092; connect to 127.0.0.1:9092",
        "  OUTSIDE: [::1]:9094; advertised as kafka.example.org:443",
        "  FREE: 10.0.0.5:40001; advertised as kafka.example.org:40001",
        "  data: /a, /b",
    ]


def test_advertised_address_of_the_only_listener_is_printed():
    listener = _HERE._replace(advertised=Address("broker1", 9092))
    assert said(listener)[1] == "  PLAINTEXT: 127.0.0.1:9092; advertised as broker1:9092"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_listener_on_loopback_prints_no_warning(host):
    assert is_loopback(host)
    assert open_warning([_HERE._replace(host=host)]) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "128.0.0.1", "fe80::1%eth0"])
def test_unprotected_reachable_listener_prints_a_warning(host):
    warning = open_warning([_HERE, _HERE._replace(name="OUTSIDE", host=host)])
    assert warning is not None
    assert warning.startswith("OUTSIDE (")
    assert "unprotected" in warning
    assert "docs/security.md" in warning, "the page that helps"
    assert "\n" not in warning
