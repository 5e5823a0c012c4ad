"""Requests that the console refuses: other hosts, other sites, other methods."""

from __future__ import annotations

import pytest

from tests.support.console.requests import scope_of
from wirebroker.console.web.request_check import refusal_of
from wirebroker.console.web.site_address import SiteAddress
from wirebroker.console.web.stream_limit import stream_kind

LOCAL = SiteAddress()
PUBLIC = SiteAddress(frozenset({"kafka.example", "10.1.2.3"}), is_local=False, is_secure=True)


def status_of(headers=None, *, method="GET", url="/c/dev/", site=LOCAL):
    refusal = refusal_of(scope_of(method, url, headers or {}), site)
    return 200 if refusal is None else refusal[0]


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8989", "127.0.0.1:1", "127.8.8.8", "[::1]:8989", "LOCALHOST.:80"],
)
def test_this_machines_names_are_served(host):
    assert status_of({"Host": host}) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8989",
        "10.0.0.7:8989",
        "0.0.0.0:8989",
        "[::]:8989",
        "user@localhost",
        "localhost/x",
        "localhost:port",
        "[::1",
    ],
)
def test_other_hosts_are_refused(host):
    assert status_of({"Host": host}) == 421


def test_a_request_without_a_host_is_refused():
    assert status_of({"Host": ""}) == 400


@pytest.mark.parametrize("host", ["kafka.example", "KAFKA.example.:443", "10.1.2.3:8443"])
def test_allowed_hosts_are_served(host):
    assert status_of({"Host": host}, site=PUBLIC) == 200
    assert status_of({"Host": host, "Origin": f"https://{host}"}, site=PUBLIC) == 200
    assert status_of({"Host": host, "Origin": f"http://{host}"}, site=PUBLIC) == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "evil.example", "x.kafka.example"])
def test_off_loopback_only_allowed_hosts_are_served(host):
    assert status_of({"Host": host}, site=PUBLIC) == 421


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "PATCH", "TRACE", "CONNECT", "post", ""])
def test_other_methods_are_refused(method):
    assert status_of(method=method) == 405


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "http://127.0.0.1:8989"}, 200),
        ({"Origin": "http://127.0.0.1:8990"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
    ],
)
def test_forms_must_be_sent_by_the_consoles_own_pages(headers, status):
    assert status_of(headers, method="POST", url="/c/dev/change/create-topic") == status


def test_programs_need_no_headers_of_browsers():
    assert status_of(method="POST", url="/api/v1/clusters/dev/changes/create-topic") == 200


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:8989"]
)
def test_other_origins_are_refused(origin):
    assert status_of({"Origin": origin}) == 403


def test_the_own_origin_is_served():
    assert status_of({"Origin": "http://127.0.0.1:8989"}) == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_parts_loaded_by_other_sites_are_refused(site):
    assert status_of({"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}) == 403
    framed = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert status_of({"Sec-Fetch-Site": site} | framed) == 403


def test_a_link_from_another_site_opens_a_page():
    headers = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert status_of(headers) == 200


@pytest.mark.parametrize("path", ["events", "topic/tail", "topic/search", "topic/download"])
def test_a_link_from_another_site_opens_no_stream(path):
    link = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for site in ("cross-site", "same-site"):
        assert status_of({"Sec-Fetch-Site": site} | link, url=f"/c/dev/{path}") == 403
    for site in ("same-origin", "none", ""):
        assert status_of({"Sec-Fetch-Site": site} | link, url=f"/c/dev/{path}") == 200


def test_too_long_addresses_are_refused():
    assert status_of(url="/c/dev/topics?q=" + "a" * 20_000) == 414


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("/c/dev/events", "events"),
        ("/c/dev/topic/search", "search"),
        ("/c/dev/topics", None),
        ("/api/v1/clusters/dev/topics/events", None),
        ("/api/v1/clusters/tail", None),
        ("/events", None),
    ],
)
def test_only_pages_of_clusters_are_streams(url, kind):
    assert stream_kind(scope_of("GET", url, {})) == kind
