"""Transactions by Apache Kafka's clients: one process of java/Transactions.java per producer."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from compat_tests.transactions.drivers import java_programs
from compat_tests.transactions.drivers.driver import TRANSACTION_TIMEOUT_MS, FencedError

if TYPE_CHECKING:
    from collections.abc import Sequence


class JavaDriver:
    def __init__(self, bootstrap: str) -> None:
        self._process = subprocess.Popen(
            [*java_programs.transactions_command(), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        self.ask("begin")

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        self.ask("write", topic, *(value.decode() for value in values))

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        self.ask("copy", source, target, group, str(count))

    def commit(self) -> None:
        self.ask("commit")

    def abort(self) -> None:
        self.ask("abort")

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, *command: str) -> list[str]:
        """Send a command; return the response without `ok`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\t".join(command) + "\n")
        self._process.stdin.flush()
        outcome, *answer = self._process.stdout.readline().rstrip("\n").split("\t")
        if outcome == "fenced":
            raise FencedError(*answer)
        assert outcome == "ok", f"{command}: {outcome} {answer}"
        return answer


class Java:
    """Apache Kafka's clients as a DriverFactory."""

    def start(self, bootstrap: str, transactional_id: str) -> JavaDriver:
        driver = JavaDriver(bootstrap)
        driver.ask("start", transactional_id, str(TRANSACTION_TIMEOUT_MS))
        return driver

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        driver = JavaDriver(bootstrap)
        try:
            return [value.encode() for value in driver.ask("read", topic, str(count))]
        finally:
            driver.close()
