"""The address of a broker in test mode, in a cluster's section."""

from __future__ import annotations

import pytest

from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.model.http_settings import HttpSettings, http_settings
from wirebroker.console.model.settings import ClusterSettings


@pytest.mark.parametrize(
    ("properties", "settings"),
    [
        ({}, HttpSettings()),
        ({"wirebroker.test.url": " http://h:80/ "}, HttpSettings("http://h:80")),
        (
            {"wirebroker.test.url": "https://h", "wirebroker.http.token": "t"},
            HttpSettings("https://h", "t"),
        ),
        (
            {"wirebroker.metrics.urls": " 1=http://a:9404 , 2 = https://b/m?x=y,"},
            HttpSettings(metrics_urls={1: "http://a:9404/metrics", 2: "https://b/m?x=y"}),
        ),
        (
            {"wirebroker.metrics.urls": "1=http://a:9404?x=y,2=http://b/?x=y/"},
            HttpSettings(metrics_urls={1: "http://a:9404/metrics?x=y", 2: "http://b/metrics?x=y/"}),
        ),
    ],
)
def test_the_address_is_read(properties, settings):
    assert http_settings(properties) == settings


@pytest.mark.parametrize(
    "url",
    ["h:80", "ftp://h", "http://", "http://u:p@h", "http://h/path", "http://h?q", "http://h:99999"],
)
def test_other_addresses_are_refused(url):
    with pytest.raises(ValueError, match=r"not an address|[Pp]ort"):
        http_settings({"wirebroker.test.url": url})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://h:80/metrics", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("a=http://h", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("1=file:///etc/passwd", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("1=http://u:p@h/metrics", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("1=http://a,1=http://b", "two addresses of broker 1"),
        ("1=http://h:99999", "[Pp]ort"),
        ("1=http://broker..1:9404/metrics", "write BROKER_ID=http://HOST:PORT/metrics"),
        (f"1=http://{'a' * 64}/metrics", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("1=http://h/metriqué", "write BROKER_ID=http://HOST:PORT/metrics"),
        ("1=http://h/a b", "write BROKER_ID=http://HOST:PORT/metrics"),
    ],
    ids=[
        "no-id",
        "word",
        "file",
        "password",
        "twice",
        "port",
        "empty-label",
        "long-label",
        "letter-of-path",
        "space",
    ],
)
def test_other_metrics_pages_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        http_settings({"wirebroker.metrics.urls": text})


@pytest.mark.parametrize(
    ("properties", "flags"),
    [
        ({"wirebroker.test.url": "http://h", "bootstrap.servers": "b:1"}, "-b b:1"),
        ({"security.protocol": "SSL"}, "-b b:1 --client-config dev.properties"),
    ],
)
def test_command_lines_name_a_file_only_for_settings_of_the_client(properties, flags):
    settings = ClusterSettings("dev", "b:1", properties)
    assert verb_line(settings, "acl list") == f"wirebroker acl list {flags}"
