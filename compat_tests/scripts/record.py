"""Records what Kafka's scripts say: `python -m compat_tests.scripts.record`; then read git diff."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.brokers import AUTHORIZED, make_broker
from tests.support.script_transcripts import Answer, played, steps_of, text_of
from tests.support.tools import PROJECT

TRANSCRIPTS = PROJECT / "tests" / "unit" / "wirebroker" / "scripts" / "transcripts"

# Until a broker has applied what its controller has answered.
_APPLIED_S = 0.5


def main(names: list[str]) -> None:
    """Record the transcripts of these names, or all."""
    with tempfile.TemporaryDirectory() as folder, KafkaScripts() as scripts:
        broker = make_broker("apache", Path(folder) / "broker", AUTHORIZED)
        broker.start()

        def run(script: str, arguments: list[str], text: str) -> Answer:
            time.sleep(_APPLIED_S)
            return scripts.run(script, arguments, text)

        # Topics first: none of Kafka's own is there yet.
        paths = sorted(TRANSCRIPTS.glob("*.txt"), key=lambda path: (path.stem != "topics", path))
        for path in paths:
            if names and path.stem not in names:
                continue
            own = Path(folder) / path.stem
            own.mkdir()
            found = played(
                steps_of(path),
                run,
                bootstrap=broker.bootstrap,
                folder=own,
                data=broker.data_dir,
            )
            path.write_text(text_of(found), encoding="utf-8")
        broker.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
