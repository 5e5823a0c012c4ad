"""The log lines that any client can cause are limited."""

from __future__ import annotations

import io
import logging

from wirebroker.base.logs import BoundedHandler
from wirebroker.console.web.server import bound_line

REFUSALS = 1000


def test_refused_requests_write_few_lines():
    stream = io.StringIO()
    handler = BoundedHandler(stream)
    log = logging.getLogger("test of bounded lines")
    log.propagate = False
    log.addFilter(bound_line)
    log.addHandler(handler)
    for _ in range(REFUSALS):
        log.warning("Invalid HTTP request received.")
    for _ in range(REFUSALS):
        log.error("a bug")
    log.removeHandler(handler)
    handler.close()
    lines = stream.getvalue().splitlines()
    # A minute may end in between.
    assert 0 < sum("Invalid" in line for line in lines) <= 2 * 62
    assert sum("a bug" in line for line in lines) == REFUSALS
