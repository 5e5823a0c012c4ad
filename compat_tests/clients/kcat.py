"""kcat, Debian's build (librdkafka 2.0.2, older than confluent-kafka's).

It cannot set headers or timestamps per message, so `produce` requires equal headers and lets kcat
set the timestamps.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from compat_tests.clients.message import WAIT_S, Message, Start
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Sequence

_STARTS = {"earliest": "beginning", "latest": "end"}


class Kcat:
    name = "kcat"

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, codec: str = "none"
    ) -> None:
        headers = {message.headers for message in messages}
        assert len(headers) == 1, "kcat gives all messages of one run the same headers"
        options = ["-Z", "-K", "\x01", "-z", codec, "-X", "acks=all"]
        for name, value in headers.pop():
            options += ["-H", f"{name}={(value or b'').decode()}"]
        lines = b"".join(
            (message.key or b"") + b"\x01" + (message.value or b"") + b"\n" for message in messages
        )
        run(bootstrap, "-P", "-t", topic, "-p", "0", *options, text=lines)

    def consume(
        self, bootstrap: str, topic: str, count: int, *, start: Start = "earliest"
    ) -> list[Message]:
        offset = str(start) if isinstance(start, int) else _STARTS[start]
        options = ["-t", topic, "-p", "0", "-o", offset, "-c", str(count)]
        printed = run(bootstrap, "-C", *options, "-J", "-u", "-q")
        return [_message(json.loads(line)) for line in printed.splitlines()]


def run(bootstrap: str, *arguments: str, text: bytes = b"") -> str:
    command = [*tools.kcat_command(), "-b", bootstrap, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, f"kcat {' '.join(arguments)}: {done.stderr.decode()}"
    return done.stdout.decode()


def _message(printed: dict[str, Any]) -> Message:
    key, value, pairs = printed["key"], printed["payload"], printed.get("headers", [])
    headers = zip(pairs[::2], pairs[1::2], strict=True)
    return Message(
        value=None if value is None else value.encode(),
        key=None if key is None else key.encode(),
        headers=tuple((name, text.encode()) for name, text in headers),
        timestamp_ms=printed["ts"],
        offset=printed["offset"],
        timestamp_type="append" if printed["tstype"] == "logappend" else "create",
    )
