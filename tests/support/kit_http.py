"""Asks a spawned broker of the kit over HTTP, as other languages do."""

from __future__ import annotations

import json
import urllib.error
import urllib.request


def ask_over_http(broker, path, **options):
    """Return the status of the answer, and its JSON."""
    address = broker._life.host._rig
    request = urllib.request.Request(f"http://{address}{path}", **options)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
