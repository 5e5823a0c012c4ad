"""The imports of short verbs, which take most of their time."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Ours: needed only by some verbs, settings or brokers. Others: imported by such a part.
_NOT_FOR_A_SHORT_VERB = {
    "wirebroker.client.security.security",
    "wirebroker.codecs.records.batch",
    "wirebroker.config.rows.row",
    "wirebroker.config.values",
    "wirebroker.security.login.login",
    "wirebroker.security.tls.tls_contexts",
    "wirebroker.broker.server",
    "wirebroker.testing",
    "_ssl",
    "cramjam",
    "cryptography",
    "hashlib",
    "json",
    "lz4",
    "re2",
    "zlib",
    "zstandard",
}

# Like the process's own `main`, against a closed port.
_VERB = """
import sys
import wirebroker.cli.main
status = wirebroker.cli.main.run(sys.argv[1:])
print(status, *sys.modules)
"""
_NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    "verb",
    [
        ("topic", "list", "-b", _NOBODY),
        ("group", "list", "-b", _NOBODY),
        ("kafka-topics", "--bootstrap-server", _NOBODY, "--list"),
    ],
    ids=lambda verb: verb[0],
)
def test_a_short_verb_imports_only_what_it_needs(verb: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", _VERB, *verb]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    *_, last = done.stdout.splitlines()
    status, *imported = last.split()
    assert status == "1"
    assert {"wirebroker.client.kafka_client", "wirebroker.net.client.tcp_dialer"} <= set(imported)
    assert not set(imported) & _NOT_FOR_A_SHORT_VERB
