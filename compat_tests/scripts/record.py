"""Record the output of Kafka scripts; then read git diff.

python -m compat_tests.scripts.record
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.brokers.brokers import AUTHORIZED, make_broker
from tests.support.cli.script_transcripts import Answer, played, steps_of, text_of
from tests.support.tools.tools import PROJECT

TRANSCRIPTS = PROJECT / "tests" / "unit" / "wirebroker" / "cli" / "kafka" / "transcripts"

# Delay until a broker has applied its controller's changes.
_APPLIED_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    all_names = sorted(path.stem for path in TRANSCRIPTS.glob("*.txt"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(all_names))
    names = parser.parse_args().names
    unknown = sorted({*names} - {*all_names})
    if unknown:
        parser.error(f"no such transcript: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder, KafkaScripts() as scripts:
        broker = make_broker("apache", Path(folder) / "broker", AUTHORIZED)
        broker.start()

        def run(script: str, arguments: list[str], text: str) -> Answer:
            time.sleep(_APPLIED_S)  # brokers apply a change later
            return scripts.run(script, arguments, text)

        # Topics first, before Kafka's internal ones exist.
        paths = sorted(TRANSCRIPTS.glob("*.txt"), key=lambda path: (path.stem != "topics", path))
        for path in paths:
            if names and path.stem not in names:
                continue
            transcript_folder = Path(folder) / path.stem
            transcript_folder.mkdir()
            recorded = played(
                steps_of(path),
                run,
                bootstrap=broker.bootstrap,
                folder=transcript_folder,
                data=broker.data_dir,
            )
            path.write_text(text_of(recorded), encoding="utf-8")
        broker.stop()


if __name__ == "__main__":
    main()
