"""The life cycle of a test broker."""

from __future__ import annotations

import asyncio
import shutil
import weakref
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.base.threads import Work, begin_in_thread, in_thread, until_idle
from wirebroker.client.errors import ClientError
from wirebroker.config import StartError
from wirebroker.testing.base.exclusive import exclusive
from wirebroker.testing.base.loop_thread import LoopThread
from wirebroker.testing.broker.held_ports import ReservedPorts
from wirebroker.testing.clients.internal_client import as_kafka_error, internal_client
from wirebroker.testing.clients.protection import Protection
from wirebroker.testing.data.data_copies import check_data, copy_data, put_data
from wirebroker.testing.data.folders import empty_directory, new_folder
from wirebroker.testing.data.snapshots import Snapshot
from wirebroker.testing.hosts.child_process import ChildProcess
from wirebroker.testing.hosts.same_process import SameProcess
from wirebroker.testing.settings.settings import broker_settings, with_kit_names

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.net.client.settings import PeerAddress
    from wirebroker.testing.clients.protection import SaslName
    from wirebroker.testing.hosts.host import Host
    from wirebroker.testing.settings.settings import Setting

_Result = TypeVar("_Result")

_OF_METADATA: Final = "metadata.log.dir"
_NOT_RUNNING: Final = "the broker is not running: use it in a with block, or call start()"
_PAUSED: Final = "the broker is paused: resume it first"


class BrokerLife:
    """The implementation of a Broker: its host, folder, thread and client.

    Attributes:
        address: Current or last address; None before the first start.
        clock_state: See Instructed.
        is_paused: Whether it is paused, and cannot run commands.
        start_count: Number of starts; a started child process has no faults of an earlier one.
        protection: Its TLS and SASL, if any.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Setting],
        directory: Path | None,
        port: int,
        is_child: bool,
        origin: Path | None,
        tls: bool = False,
        sasl: SaslName | None = None,
        host: Host | None = None,
    ) -> None:
        if origin is not None:
            if directory is not None:
                raise ValueError("give a directory or a snapshot, not both")
            check_data(origin)
        self.address: PeerAddress | None = None
        self.clock_state: dict[str, Any] | None = None
        self.is_paused = False
        self.lock = RLock()
        self._config = dict(config)
        self._user_directory = directory
        # Configs of a container name directories inside it.
        self._is_on_this_machine = host is None
        self._origin = origin
        # None if the configs set the listeners.
        self._requested_port = None if "listeners" in config else port
        self._folder = new_folder()
        self.protection = Protection(self._folder, tls=tls, sasl=sasl) if tls or sasl else None
        if host is None:
            host = ChildProcess(self._folder / "broker.log") if is_child else SameProcess()
        self.host: Host = host
        self.start_count = 0
        self._number = 0
        self._thread: LoopThread | None = None
        self._client: KafkaClient | None = None
        self._old_ports = ReservedPorts()
        self._asking: set[asyncio.Task[Any]] = set()
        self._clean = weakref.finalize(self, _clean, self.host, self._folder)

    @property
    def directory(self) -> Path:
        """The data directory."""
        return self._user_directory or self._folder / f"data-{self._number}"

    @exclusive
    def start(self) -> None:
        """Start the broker; see OneBroker."""
        if not self.host.is_running:
            try:
                self._started_thread().call(self._start())
            except StartError as error:
                raise StartError(with_kit_names(error.what), with_kit_names(error.mend)) from error

    @exclusive
    def stop(self) -> None:
        """Stop the broker if it is running."""
        if self._thread is not None and self.host.is_running:
            self._thread.call(self._end(self.host.stop))

    @exclusive
    def kill(self) -> None:
        """Kill the broker if it is running."""
        if self._thread is not None and self.host.is_running:
            self._thread.call(self._end(self.host.kill))

    @exclusive
    def pause(self) -> None:
        """Freeze the broker.

        Raises:
            RuntimeError: It is not running, or its host cannot pause it.
        """
        if self._thread is None or not self.host.is_running:
            raise RuntimeError(_NOT_RUNNING)
        self._thread.call(self.host.pause())
        self.is_paused = True

    @exclusive
    def resume(self) -> None:
        """Continue a paused broker."""
        if self._thread is not None and self.host.is_running:
            self._thread.call(self.host.resume())
        self.is_paused = False

    @exclusive
    def reset(self, config: Mapping[str, Setting]) -> None:
        """Replace the broker with an empty one; see Broker."""
        names_directory = self._is_on_this_machine and _OF_METADATA in {**self._config, **config}
        if self._user_directory is not None or names_directory:
            raise RuntimeError("a directory that you gave is not reset: its data may be needed")
        self._started_thread().call(self._replace(config))

    @exclusive
    def take_snapshot(self, target: Path | None) -> Snapshot:
        """Copy the data; see Broker.snapshot."""
        self._check_open()
        target = empty_directory(target, self._folder)
        if self._thread is not None and self.host.is_running:
            self._thread.call(self.host.take_snapshot(target))
        else:
            copy_data(self.directory, target)
        return Snapshot(target)

    @exclusive
    def restore(self, snapshot: Path) -> None:
        """Replace the data; see Broker."""
        self._check_open()
        check_data(snapshot)
        replace = partial(put_data, snapshot, self.directory)
        if self._thread is not None and self.host.is_running:
            self._thread.call(self._swap(replace))
        else:
            replace()

    @exclusive
    def close(self) -> None:
        """End the broker; see Broker."""
        if self._user_directory is not None:
            self.stop()
        else:
            self.kill()
        if self._thread is not None:
            self._thread.call(until_idle())  # threads may be deleting folders
            self._thread.stop()
            self._thread = None
        self._old_ports.release()
        self._clean()

    def ask(self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine with the kit's client."""
        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._thread.call(self._run_request(question))

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a test command (controls.py).

        Raises:
            RuntimeError: The broker was never started, or is paused.
            ValueError: An argument is invalid.
            ConnectionError: Its separate process is not running.
        """
        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        if self.is_paused:
            raise RuntimeError(_PAUSED)
        return self._thread.call(self.host.carry_out(command, arguments))

    def _check_open(self) -> None:
        if not self._clean.alive:
            raise RuntimeError("this broker was closed: create another")

    def _started_thread(self) -> LoopThread:
        self._check_open()
        self._thread = self._thread or LoopThread("wirebroker-testing")
        return self._thread

    # -- on the loop -------------------------------------------------------------------------

    async def _start(self, config: Mapping[str, Setting] | None = None) -> None:
        if self._origin is not None and not self.directory.exists():
            await in_thread(Work.UPKEEP, copy_data, self._origin, self.directory)
        port = self._requested_port if self.address is None else self.address.port
        self.address = await self.host.start(self.directory, self._settings(config or {}), port)
        self.start_count += 1
        if self.clock_state is not None:
            await self.host.carry_out("restore-clock", self.clock_state)
        await self._connect(self.address)

    async def _connect(self, address: PeerAddress) -> None:
        if self.protection is None:
            self._client = internal_client(address)
        else:
            self._client = internal_client(address, security=self.protection.way())
            await self.protection.add_user(self._client)

    async def _end(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        client, self._client = self._client, None
        assert client is not None, "it runs"
        for task in self._asking:
            task.cancel()
        client.abort()
        try:
            await end()
        finally:
            self.is_paused = False  # its process has ended

    async def _swap(self, replace: Callable[[], None]) -> None:
        await self._end(partial(self.host.swap, replace))
        assert self.address is not None, "it was started"
        await self._connect(self.address)

    async def _run_request(
        self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]
    ) -> _Result:
        client, task = self._client, asyncio.current_task()
        assert task is not None
        if client is None:
            raise RuntimeError(_NOT_RUNNING)
        self._asking.add(task)
        try:
            return await question(client)
        except ClientError as error:
            raise as_kafka_error(error) from error
        except asyncio.CancelledError:
            if self._client is client:
                raise
            raise ConnectionError("the broker was stopped meanwhile") from None
        finally:
            self._asking.discard(task)

    def _settings(self, config: Mapping[str, Setting]) -> dict[str, str]:
        protected = {} if self.protection is None else self.protection.settings()
        return broker_settings({**protected, **self._config, **config})

    async def _replace(self, config: Mapping[str, Setting]) -> None:
        old_address, self.address, self.clock_state = self.address, None, None
        if self.host.is_running:
            await self._end(partial(self._renew, self._settings(config)))
        # Clients of the last test may still use the old address.
        if old_address is not None and old_address != self.address:
            self._old_ports.hold(old_address)
        if self.address is not None:
            await self._connect(self.address)
            return
        begin_in_thread(Work.UPKEEP, shutil.rmtree, self.directory, True)
        self._number += 1
        self.host.reset()
        await self._start(config)

    async def _renew(self, settings: Mapping[str, str]) -> None:
        if self.is_paused:
            await self.host.kill()
            return
        self.address = await self.host.renew(settings)
        if self.address is not None and self._origin is not None:
            await self.host.swap(partial(put_data, self._origin, self.directory))


def _clean(host: Host, folder: Path) -> None:
    host.leave_nothing()
    shutil.rmtree(folder, ignore_errors=True)
