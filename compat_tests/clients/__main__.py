"""README's table of clients and features: the results of the last recorded run of their tests.

    python -m compat_tests.clients           print the table
    python -m compat_tests.clients --run     run the tests, record what passed, write the table

The record is tested.json; it says how many tests passed for each client and feature.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from compat_tests.clients.versions import CLIENTS
from tests.support.harness.project_files import ROOT

RECORD = Path(__file__).parent / "tested.json"
README = ROOT / "README.md"
FEATURES = (
    "produce, consume",
    "consumer groups",
    "consumer protocol",
    "share groups",
    "streams groups",
    "transactions",
    "admin",
)
TESTS = ("compat_tests", "spark_it", "--nightly", "-m", "shows")
RECORDING = ("-p", "compat_tests.clients.recording", "--record-clients")
_TABLE = re.compile(r"^\| client \| version \|.*\n(\|.*\n)+", re.MULTILINE)


def table(record: dict[str, Any]) -> str:
    headings = ["client", "version", *FEATURES]
    rows = [headings, ["---"] * len(headings)]
    for client, (title, _) in CLIENTS.items():
        if client in record:
            features = record[client]["features"]
            cells = [_cell(features.get(feature)) for feature in FEATURES]
            if not cells[0] and cells[1] == "yes":
                cells[0] = "consume"  # as the members of a group do
            rows.append([title, record[client]["version"], *cells])
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    return "".join(re.sub(r"\|  (?=\|)", "| ", line) for line in lines)


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    if result["failed"]:
        return f"{result['failed']} of {result['failed'] + result['passed']} tests fail"
    return ", ".join(result["details"]) or "yes"


def with_table(text: str, new: str) -> str:
    text, count = _TABLE.subn(lambda _: new, text)
    assert count == 1, "README.md has no table of clients"
    return text


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or run the tests and write it; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="compat_tests.clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", action="store_true", help="run the tests and record the results")
    parser.add_argument(
        "options",
        nargs="*",
        metavar="OPTION",
        help="pytest options, after --; they select tests, and other results are kept",
    )
    options = parser.parse_args(arguments)
    if not options.run:
        sys.stdout.write(table(json.loads(RECORD.read_text("utf-8"))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results_file = Path(folder) / "found.json"
        if options.options:  # for some of the tests
            shutil.copy(RECORD, results_file)
        command = [sys.executable, "-m", "pytest", *TESTS, *RECORDING, str(results_file)]
        status = subprocess.run([*command, *options.options], cwd=ROOT, check=False).returncode
        text = results_file.read_text("utf-8")
    RECORD.write_text(text, "utf-8")
    README.write_text(with_table(README.read_text("utf-8"), table(json.loads(text))), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
