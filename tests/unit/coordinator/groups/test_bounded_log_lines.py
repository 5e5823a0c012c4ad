"""Log lines that clients can cause have a subject, by which their number is bounded."""

from __future__ import annotations

import ast
from pathlib import Path

import wirebroker

ROOT = Path(wirebroker.__file__).parent
ROOMS = (
    "coordinator/groups",
    "coordinator/client_metrics",
    "client_metrics",
    "coordination",
    "api/groups",
)
LEVELS = {"info", "warning", "error", "exception", "critical"}
# By file: its lines do not depend on what clients send.
OF_THE_NODE = {
    "coordinator_partitions.py",  # elections and failed loads
    "coordinator_service.py",  # failed periodic work
}


def logging_calls():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if path.name in OF_THE_NODE:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    called = node.func
                    if called.attr in LEVELS and ast.unparse(called.value) == "logger":
                        yield path, node


def test_log_lines_of_groups_are_bounded():
    calls = list(logging_calls())
    assert len(calls) > 20
    unbounded = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in calls
        if "extra" not in {keyword.arg for keyword in node.keywords}
    ]
    assert unbounded == []
