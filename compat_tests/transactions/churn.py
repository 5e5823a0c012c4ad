"""Chained stages of member programs that join, leave and die, and a collector of their events."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.churn_member import PARTITIONS
from tests.support.tools import tools

if TYPE_CHECKING:
    import random
    from pathlib import Path

_LAST_ERRORS = 30


@dataclass(slots=True)
class RunningMember:
    name: str
    transactional_id: str
    process: subprocess.Popen[bytes]


@dataclass(slots=True)
class Stage:
    number: int
    source: str
    target: str
    members: list[RunningMember] = field(default_factory=list)


class Churn:
    """All stages and their members' events.

    Attributes:
        aborted: Names of transactions that their members have aborted.
        counts: Number of each action and event.
        request_s: Timeout of a member's requests and transactions.
    """

    def __init__(
        self, bootstrap: str, names: list[str], choice: random.Random, log: Path, *, request_s: int
    ) -> None:
        self.bootstrap = bootstrap
        self.request_s = request_s
        self.choice = choice
        self.stages = [
            Stage(number, source, target) for number, (source, target) in enumerate(pairwise(names))
        ]
        self.aborted: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self._log = log.open("ab")
        self._started = 0
        self._leaving: list[RunningMember] = []
        self._reading, self._writing = os.pipe()
        self._unread = b""

    def close(self) -> None:
        for stage in self.stages:
            for member in stage.members:
                _end(member)
        for member in self._leaving:
            _end(member)
        os.close(self._reading)
        os.close(self._writing)
        self._log.close()

    def start(self, stage: Stage, transactional_id: str | None = None) -> None:
        self._started += 1
        name = f"m{self._started}"
        identity = transactional_id or f"{stage.target}-{name}"
        group = f"group-{stage.target}"
        seed = str(self.choice.random())
        arguments = [name, self.bootstrap, stage.source, stage.target, group, identity, seed]
        arguments.append(str(self.request_s))
        process = subprocess.Popen(
            [sys.executable, "-m", "compat_tests.transactions.churn_member", *arguments],
            stdin=subprocess.PIPE,
            stdout=self._writing,
            stderr=self._log,
            cwd=tools.PROJECT,
        )
        member = RunningMember(name, identity, process)
        stage.members.append(member)
        self.counts["members started"] += 1

    def kill(self, stage: Stage) -> None:
        """Kill a member; its successor reuses its transactional id, or waits for its timeout."""
        member = self.choice.choice(stage.members)
        stage.members.remove(member)
        _end(member)
        self.counts["members killed"] += 1
        self.start(stage, member.transactional_id if self.choice.random() < 0.5 else None)

    def replace(self, stage: Stage) -> None:
        self.start(stage)
        leaving = stage.members.pop(0)
        assert leaving.process.stdin
        leaving.process.stdin.close()  # it leaves after its transaction
        self._leaving.append(leaving)
        self.counts["members leaving"] += 1

    def listen(self) -> None:
        while select.select([self._reading], [], [], 0)[0]:
            self._unread += os.read(self._reading, 1 << 16)
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def check(self) -> None:
        """Replace members that gave up (see churn_member.py); fail if one ended otherwise."""
        for stage in self.stages:
            for member in list(stage.members):
                status = member.process.poll()
                if status is None:
                    continue
                end = f"{member.name} ended with {status}: {self.last_words()}"
                assert status == -signal.SIGALRM, end
                stage.members.remove(member)
                _end(member)
                self.counts["members that gave up"] += 1
                self.start(stage, member.transactional_id)

    def last_words(self) -> str:
        """Return the members' recent errors, and the end of their standard error."""
        self._log.flush()
        with open(self._log.name, errors="replace") as log:  # noqa: PTH123
            stderr = log.read()[-800:]
        return "\n".join([stderr, *self.errors[-_LAST_ERRORS:]])

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "ready":
                self.counts["producers started"] += 1
            case "aborting":
                self.aborted.add(event["txn"])
                self.counts["transactions aborted"] += 1
            case "committed":
                self.counts["transactions committed"] += 1
            case "error":
                self.counts["errors that members overcame"] += 1
                self.errors.append(f"{event['member']}: {event['error']}")


def _end(member: RunningMember) -> None:
    member.process.kill()
    member.process.wait(WAIT_S)
    if member.process.stdin:
        member.process.stdin.close()


def write_ids(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20}
    )
    for number in range(records):
        while True:
            try:
                producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    assert producer.flush(WAIT_S) == 0
