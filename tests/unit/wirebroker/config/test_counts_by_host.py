"""max.connections.per.ip.overrides: values that Apache Kafka 4.4 accepts and refuses."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.rows.texts import counts_by_host

NAME = "max.connections.per.ip.overrides"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {}),
        (",", {}),
        ("127.0.0.9:2147483647", {"127.0.0.9": 2147483647}),
        ("::1:-1", {"::1": -1}),
        ("10.9.9.9:+1, 10.9.9.8 : 5", {"10.9.9.9": 1, "10.9.9.8": 5}),
        ("10.9.9.9:1,10.9.9.9:2", {"10.9.9.9": 2}),
        ("10.9.9.9:\u0663", {"10.9.9.9": 3}),
        ("fe80::1%lo:2", {"fe80::1%lo": 2}),
        ("a_b:1", {"a_b": 1}),
        ("\0:1", {"": 1}),
        (":1", {"": 1}),
    ],
)
def test_counts_are_read_as_kafka_reads_them(text, counts):
    assert counts_by_host(text) == counts
    assert Config({NAME: text}).str(NAME) == text


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.9:99999999999",
        "127.0.0.9:2147483648",
        "127.0.0.9:-2147483649",
        "127.0.0.9:" + "9" * 5000,
        "127.0.0.9:0x5",
        "127.0.0.9:5:",
        "127.0.0.9",
        "[::1]:2",
        "a b:1",
        "/:1",
        "1.2.3.4/8:1",
        "\u00e9:1",
        "a\0b:1",
    ],
)
def test_values_that_kafka_refuses_are_refused(text):
    with pytest.raises(ConfigError, match="it must be a list of host:count"):
        Config({NAME: text})
