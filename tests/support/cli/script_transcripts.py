"""Transcripts of Apache Kafka's scripts, with which the output of our scripts is compared.

    $ kafka-topics --create --topic orders
    Created topic orders.
    status 0

A line `< text` before a command is part of its input. In commands, `BOOTSTRAP` means
`--bootstrap-server HOST:PORT`, `DIR` a folder of the test and `DATA` the broker's data;
`write FILE` writes the input lines to a file in DIR.

Values that differ between runs are replaced by names (HOST:PORT, ID, NOW, CRC), and several spaces
by one. Java stack traces and deprecation warnings are left out. After the comment `# any order`,
lines may come in any order; after `# the broker's words`, the end of the first line may differ.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from wirebroker.cli import main as cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Answer(NamedTuple):
    status: int
    out: str
    err: str


class Step(NamedTuple):
    comment: list[str]
    command: str
    read: list[str]
    said: list[str]


# Lines of stack traces, the exceptions above them, errors of tools that Scripts.java ends, and
# deprecation warnings, which our scripts print to standard error.
_LEFT_OUT = re.compile(
    r"\tat |\t\.\.\. |Caused by: "
    r"|[\w.$]+(Exception|Ended)(: |$)|.* is deprecated and will be removed"
    r"|(Error: )?Ex?.* command(:| failed due to) null$"
)
# Options of read-only commands. They are repeated, because Apache Kafka may respond before its
# broker has applied the previous change.
_LOOKS = frozenset({"--describe", "--list", "--time"})
_POLL_S = 0.1
_NAMED = (
    (re.compile(r"\b127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"(CreateTime|LogAppendTime|timestamp|NoTimestampType): ?\d{13}"), r"\1: NOW"),
    (re.compile(r"crc: \d+"), "crc: CRC"),
    (re.compile(r"(Cluster ID: |ClusterId: +)[\w-]{22}"), r"\1ID"),
    (re.compile(r"^((LeaderEpoch|HighWatermark): +)\d+"), r"\1N"),
    # Kafka before 4.4 does not report the directories of replicas here.
    (re.compile(r'"log_dirs":\[[^]]*\]'), '"log_dirs":[DIRECTORY]'),
    # Only brokers with controller listeners have these.
    (re.compile(r', "endpoints": \[[^]]*\]'), ""),
    (re.compile(r"127\.0\.0\.1 \d+ "), "HOST PORT "),
    # A voter's row of kafka-metadata-quorum: its end offset and times.
    (re.compile(r"^(\d+ *\t[\w-]{22}\t)\d+ *(\t0 *\t).*\t(\w+)"), r"\1END\2NOW\tNOW\t\3"),
    # Random ids of kafka-storage.
    (re.compile(r"directory\.id=[\w-]{22}"), "directory.id=ID"),
    (re.compile(r"^[\w-]{22}$"), "ID"),
    # The width of the masked values above.
    (re.compile(r"(?<=\w) +\t"), "\t"),
    (re.compile(r"^ +\t"), "\t"),
    (re.compile(r" {2,}"), " "),
)


def steps_of(path: Path) -> list[Step]:
    steps: list[Step] = []
    comment: list[str] = []
    read: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            comment.append(line)
        elif line.startswith("< "):
            read.append(line[2:])
        elif line.startswith("$ "):
            steps.append(Step(comment, line[2:], read, []))
            comment, read = [], []
        elif line.startswith("> "):
            steps[-1].said.append(line[2:])
    return steps


def text_of(steps: list[Step]) -> str:
    lines: list[str] = []
    for step in steps:
        lines += step.comment
        lines += [f"< {line}" for line in step.read]
        lines += [f"$ {step.command}", *(f"> {line}" for line in step.said), ""]
    return "\n".join(lines)


def played(
    steps: list[Step],
    run: Callable[[str, list[str], str], Answer],
    *,
    bootstrap: str,
    folder: Path,
    data: Path,
    patience_s: float = 0.0,
) -> list[Step]:
    """Run the commands of a transcript and return it with their output.

    Args:
        steps: The transcript.
        run: Runs a script with its name, arguments and input.
        bootstrap: The broker's address.
        folder: DIR.
        data: DATA.
        patience_s: How long to repeat a read-only command whose output differs.
    """
    results: list[Step] = []
    for step in steps:
        command = step.command.replace("BOOTSTRAP", f"--bootstrap-server {bootstrap}")
        command = command.replace("DIR", str(folder)).replace("DATA", str(data))
        words = shlex.split(command)
        if words[0] == "write":
            text = "\n".join(step.read).replace("DIR", str(folder))
            (folder / words[1]).write_text(f"{text}\n")
            results.append(step._replace(said=[]))
            continue
        deadline = time.monotonic() + (patience_s if _LOOKS & set(words) else 0)
        result = _said(step, run, words, (folder, data))
        while differs(step, result) and time.monotonic() < deadline:
            time.sleep(_POLL_S)  # no event announces it
            result = _said(step, run, words, (folder, data))
        results.append(result)
    return results


def our_scripts(capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Return a function that runs our scripts in this process."""

    def one(script: str, arguments: list[str], text: str | bytes = "") -> Answer:
        capfd.readouterr()
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.seek(0)
            patch.setattr(sys, "stdin", file)
            status = cli.run([script, *arguments])
        return Answer(status, *capfd.readouterr())

    return one


def _said(
    step: Step,
    run: Callable[[str, list[str], str], Answer],
    words: list[str],
    folders: tuple[Path, Path],
) -> Step:
    folder, data = folders
    answer = run(words[0], words[1:], "".join(f"{line}\n" for line in step.read))
    text = answer.out.replace(str(data), "DATA").replace(str(folder), "DIR")
    output_lines = [_named(line).rstrip() for line in text.splitlines()]
    lines = [line for line in output_lines if line and not _LEFT_OUT.match(line)]
    return step._replace(said=[*lines, f"status {answer.status}"])


def _named(line: str) -> str:
    for pattern, name in _NAMED:
        line = pattern.sub(name, line)
    return line


def differs(recorded: Step, said: Step) -> bool:
    expected, actual = list(recorded.said), list(said.said)
    if "# any order" in recorded.comment:
        return sorted(expected) != sorted(actual)
    if "# the broker's words" in recorded.comment and expected and actual:
        expected[0], actual[0] = (lines[0].partition(" : ")[0] for lines in (expected, actual))
    return expected != actual
