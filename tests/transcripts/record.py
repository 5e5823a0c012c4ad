"""Records a broker's responses in the transcripts.

    python -m tests.transcripts.record [FILE.txt …]

starts a new Apache Kafka 4.4.0 for each file and rewrites the file. `--broker-address HOST:PORT`
uses a running broker without these topics instead.

With WIREBROKER_TESTS_KAFKA=4.3.1 it writes only kafka_4_3.json: the differences of Apache Kafka
4.3.1 or, with `--broker wirebroker`, of a wirebroker with that release's features.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

from tests.support.tools.tools import IS_REFERENCE
from tests.transcripts.agreed import OTHER_VERSION, is_known
from tests.transcripts.comparing import found_differences
from tests.transcripts.driver import Driver
from tests.transcripts.files import driver_for, name_of, transcripts
from tests.transcripts.script import ScriptError, parse, render


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Record transcripts.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.txt")
    parser.add_argument("--broker", choices=("apache", "wirebroker"), default="apache")
    parser.add_argument("--broker-address", metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    for file in options.files or transcripts():
        sys.stderr.write(f"{file.name} …\n")
        try:
            if IS_REFERENCE:
                _record(file, kind=options.broker, address=options.broker_address)
            elif is_known(options.broker, name_of(file)):
                _record_differences(file, options.broker)
        except ScriptError as error:
            sys.stderr.write(f"{file}: {error}\n")
            return 1
    return 0


def _record(file: Path, *, kind: str, address: str | None) -> None:
    steps = parse(file.read_text())
    if address:
        host, _, port = address.rpartition(":")
        with contextlib.closing(Driver(host, int(port))) as driver:
            recorded_steps = driver.run(steps)
    else:
        with (
            tempfile.TemporaryDirectory() as directory,
            driver_for(file, kind, Path(directory), steps) as driver,
        ):
            recorded_steps = driver.run(steps)
    file.write_text(render(recorded_steps))


def _record_differences(file: Path, kind: str) -> None:
    steps = parse(file.read_text())
    with (
        tempfile.TemporaryDirectory() as directory,
        driver_for(file, kind, Path(directory), steps) as driver,
    ):
        differences = found_differences(steps, driver)
    every = json.loads(OTHER_VERSION.read_text("utf-8"))
    every[kind].pop(name_of(file), None)
    if differences:
        every[kind][name_of(file)] = differences
    OTHER_VERSION.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
