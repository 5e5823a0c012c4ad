"""A broker in a child process, which can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import wirebroker
from wirebroker.base.threads import Work, in_thread
from wirebroker.config import StartError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.hosts.control_client import send_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_READY: Final = "wirebroker ready on "
_HTTP: Final = "http://"
_START_S: Final = 60.0
_STOP_S: Final = 30.0
# Usually 10 ms; a broker that hangs is replaced.
_RESET_S: Final = 5.0
# The length of most log lines.
_LINE_BYTES: Final = 400


class ChildProcess:
    """A host with one child process at a time."""

    def __init__(self, log_file: Path) -> None:
        self.process_id: int | None = None
        self._log_file = log_file
        self._log_began = 0
        self._process: asyncio.subprocess.Process | None = None
        self._controls: PeerAddress | None = None
        self._settings: dict[str, str] = {}

    @property
    def is_running(self) -> bool:
        """See Host."""
        return self._process is not None

    @property
    def test_url(self) -> str | None:
        """See Host."""
        return None if self._controls is None else f"http://{self._controls}"

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """See Host; KAFKA_ environment variables have no effect."""
        assert self._process is None
        self._settings = dict(settings)
        command = [sys.executable, "-P", "-m", "wirebroker", "serve", "--data-dir", str(directory)]
        command += ["--test-mode", "--set", "wirebroker.http.listeners=127.0.0.1:0"]
        command += ["--port", str(port)] if port is not None else []
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with self._log_file.open("ab") as log:
            self._log_began = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(),
                # The terminal's SIGINT is for the tests.
                start_new_session=True,
            )
        self.process_id = self._process.pid
        try:
            async with asyncio.timeout(_START_S):
                return await self._ready(self._process)
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Send SIGTERM.

        Raises:
            TimeoutError: It did not stop, and was killed.
        """
        process = self._process
        assert process is not None
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)  # it may be paused
        try:
            async with asyncio.timeout(_STOP_S):
                await process.communicate()
        finally:
            await self.kill()

    async def kill(self) -> None:
        """Send SIGKILL."""
        process, self._process = self._process, None
        self.process_id = None
        assert process is not None
        if process.returncode is None:
            process.kill()
        await process.communicate()

    async def pause(self) -> None:
        """Send SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    async def resume(self) -> None:
        """Send SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def leave_nothing(self) -> None:
        """See Host."""
        if self.process_id is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process_id, signal.SIGKILL)

    def log_lines(self, most: int) -> list[str]:
        """See Host."""
        with self._log_file.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_began, end - most * _LINE_BYTES))
            return log.read().decode(errors="replace").splitlines()[-most:]

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """See Host; uses HTTP."""
        if self._controls is None or not self.is_running:
            raise ConnectionError("the broker is not running")
        return await in_thread(Work.UPKEEP, send_command, self._controls, command, arguments)

    async def take_snapshot(self, target: Path) -> None:
        """Let the broker copy its data, and move the copy."""
        result = await self.carry_out("take-snapshot", {"name": f"for-{target.name}"})
        await in_thread(Work.UPKEEP, _move, Path(result["directory"]), target)

    async def swap(self, replace: Callable[[], None]) -> None:
        """Crash and start the broker within its process."""
        await self.carry_out("crash", {})
        try:
            await in_thread(Work.UPKEEP, replace)
            await self.carry_out("start", {})
        except BaseException:
            await self.kill()
            raise

    async def renew(self, settings: Mapping[str, str]) -> PeerAddress | None:
        """Reset the broker within its process, unless settings differ.

        It is killed if that fails; the next start reports the reason.
        """
        if settings == self._settings:
            log_began = self._log_file.stat().st_size
            with contextlib.suppress(ValueError, ConnectionError, TimeoutError):
                async with asyncio.timeout(_RESET_S):
                    address = PeerAddress(**await self.carry_out("reset", {}))
                self._log_began = log_began
                return address
        await self.kill()
        return None

    def reset(self) -> None:
        """Do nothing: the controls ended with the process."""

    @staticmethod
    async def _control_address(ready_lines: asyncio.StreamReader) -> PeerAddress | None:
        while line := (await ready_lines.readline()).decode().strip():
            if line.startswith(_HTTP):
                host, _, port = line.removeprefix(_HTTP).partition(": ")[0].rpartition(":")
                return PeerAddress(host, int(port))
        return None

    async def _ready(self, process: asyncio.subprocess.Process) -> PeerAddress:
        assert process.stdout is not None
        while line := (await process.stdout.readline()).decode():
            if line.startswith(_READY):
                host, _, port = line.removeprefix(_READY).split()[0].rpartition(":")
                self._controls = await self._control_address(process.stdout)
                is_everywhere = host in {"[::]", "0.0.0.0"}  # noqa: S104 - its setting
                return PeerAddress("127.0.0.1" if is_everywhere else host.strip("[]"), int(port))
        await process.wait()
        output = "; ".join(self.log_lines(3)).removeprefix("wirebroker: ")
        raise StartError(
            f"the broker ended with status {process.returncode}",
            output or f"see its log ({self._log_file})",
        )


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        target.rmdir()
    shutil.move(source, target)
    with contextlib.suppress(OSError):  # it contains other snapshots
        source.parent.rmdir()


def _environment() -> dict[str, str]:
    """Return an environment in which the broker imports this wirebroker."""
    root = str(Path(wirebroker.__file__).parent.parent)
    search_path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")
    }
    return environment | {"PYTHONPATH": search_path}
