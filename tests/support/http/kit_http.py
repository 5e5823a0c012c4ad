"""The process of a broker that the kit started, and its HTTP interface for other languages."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from wirebroker.testing.hosts.child_process import ChildProcess


def control_url(broker):
    """Return the address of a spawned broker's test mode."""
    return f"http://{broker._life.host._controls}"


def ask_over_http(broker, path, **options):
    request = urllib.request.Request(f"{control_url(broker)}{path}", **options)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def process_of(broker):
    """Return the process id of a broker or of a cluster's node."""
    host = broker._life.host
    assert isinstance(host, ChildProcess)
    return host.process_id
