"""The life cycle of a test cluster."""

from __future__ import annotations

import shutil
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import committed_of
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.base.exclusive import exclusive
from wirebroker.testing.base.loop_thread import LoopThread
from wirebroker.testing.broker.life import BrokerLife
from wirebroker.testing.clients.internal_client import CLIENT_ID, as_kafka_error, internal_client
from wirebroker.testing.clients.partition_leaders import until_in_sync, until_missed
from wirebroker.testing.cluster.all_nodes import AllNodes
from wirebroker.testing.cluster.cluster_controller import ClusterController
from wirebroker.testing.cluster.cluster_node import ClusterNode
from wirebroker.testing.cluster.node_links import NodeLinks
from wirebroker.testing.data.data_copies import copy_data, put_data
from wirebroker.testing.data.folders import empty_directory, new_folder
from wirebroker.testing.data.snapshots import Snapshot
from wirebroker.testing.settings.node_settings import (
    CONTROLLER_ID,
    HOST,
    ListenerPorts,
    free_port,
    node_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping
    from pathlib import Path

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.testing.settings.settings import Setting

_Result = TypeVar("_Result")

_MOST_NODES: Final = 9
_NOT_RUNNING: Final = "the cluster is not running: use it in a with block, or call start()"


class ClusterLifecycle:
    """The implementation of a Cluster.

    Attributes:
        nodes: By id; empty before the first start.
        all_nodes: Runs clock and fault commands.
    """

    def __init__(self, count: int, config: Mapping[str, Setting]) -> None:
        if not 1 <= count <= _MOST_NODES:
            raise ValueError(f"a cluster has 1 to {_MOST_NODES} nodes, not {count}")
        self.nodes: list[ClusterNode] = []
        self.lock = RLock()
        self._count = count
        self._config = dict(config)
        self._lives: list[BrokerLife] = []
        self.all_nodes = AllNodes(self._lives, self._paused)
        self._addresses: list[PeerAddress] = []
        self._links = NodeLinks()
        self._thread: LoopThread | None = None
        self._controller: ClusterController | None = None
        self._controller_ports = ListenerPorts(0, 0)
        self._folder = new_folder()
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        # With its addresses.
        self._client: tuple[tuple[PeerAddress, ...], KafkaClient] | None = None

    @exclusive
    def start(self) -> None:
        """Start all nodes; see Cluster."""
        if not self._clean.alive:
            raise RuntimeError("this cluster was closed: create another")
        if self._thread is None:
            self._thread = LoopThread("wirebroker-cluster")
            self._thread.call(self._prepare())
        with ThreadPoolExecutor(self._count) as pool:
            list(pool.map(BrokerLife.start, self._lives))
        # The first client to look for a coordinator would have to retry after a second.
        self.ask(lambda client: committed_of(client, CLIENT_ID))

    @exclusive
    def close(self) -> None:
        """See Cluster."""
        for life in self._lives:
            life.close()
        if self._thread is not None:
            self._thread.call(self._end())
            self._thread.stop()
            self._thread = None
        self.nodes, self._addresses = [], []
        self._lives.clear()
        self.all_nodes.forget()
        self._links, self._client = NodeLinks(), None
        self._controller = None
        self._clean()

    @exclusive
    def take_snapshot(self, target: Path | None) -> Snapshot:
        """Copy all data; see Cluster."""
        directories = self._directories()
        target = empty_directory(target, self._folder)
        running = self._running()
        if 0 < len(running) < self._count:
            # The node that stops last leads again, so it must be one that is restarted.
            self.ask(lambda client: until_missed(client, running))
        with self._at_rest(BrokerLife.stop):
            for name, directory in directories.items():
                copy_data(directory, target / name)
        return Snapshot(target)

    @exclusive
    def restore(self, snapshot: Path) -> None:
        """Replace all data; see Cluster."""
        directories = self._directories()
        snapshot_names = (
            {path.name for path in snapshot.iterdir()} if snapshot.is_dir() else set[str]()
        )
        if snapshot_names != directories.keys():
            raise ValueError(f"{snapshot} is not a snapshot of a cluster of {self._count} nodes")
        with self._at_rest(_crash):
            for name, directory in directories.items():
                put_data(snapshot / name, directory)

    @property
    def bootstrap_servers(self) -> str:
        """See Cluster."""
        if not self.nodes:
            raise RuntimeError(_NOT_RUNNING)
        return ",".join(map(str, self._addresses))

    def isolate(self, node_id: int) -> None:
        """Isolate a node."""
        self._on_loop(self._links.isolate, node_id)

    def heal(self, node_id: int) -> None:
        """Reconnect a node."""
        if self._thread is not None:
            self._on_loop(self._links.heal, node_id)

    def ask(self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine with the kit's client."""
        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._thread.call(self._answered(question))

    # -- inside ------------------------------------------------------------------------------

    def _paused(self) -> list[int]:
        return [node.id for node in self.nodes if node.is_paused]

    def _running(self) -> list[int]:
        return [node.id for node in self.nodes if node.is_running]

    def _directories(self) -> dict[str, Path]:
        """Return the data directories by their names in snapshots."""
        if self._thread is None or self._controller is None:
            raise RuntimeError(_NOT_RUNNING)
        for node_id in self._links.isolated:
            raise RuntimeError(f"node {node_id} is cut off and could not start: heal the network")
        nodes = {f"node-{node.id}": node.directory for node in self.nodes}
        return {"controller": self._controller.directory, **nodes}

    @contextmanager
    def _at_rest(self, end: Callable[[BrokerLife], None]) -> Generator[None]:
        """End everything that is running during the block."""
        assert self._thread is not None, "there are directories"
        assert self._controller is not None, "likewise"
        running = [life for life in self._lives if life.host.is_running]
        with ThreadPoolExecutor(self._count) as pool:
            list(pool.map(end, running))
        self._thread.call(self._controller.stop())
        try:
            yield
        finally:
            self._thread.call(self._start_controller())
            with ThreadPoolExecutor(self._count) as pool:
                list(pool.map(_begin_again, running))
        if ids := self._running():
            self.ask(lambda client: until_in_sync(client, ids))

    async def _start_controller(self) -> None:
        assert self._controller is not None, "it was made"
        await self._controller.start(self._controller_ports, self._count, self._config)

    async def _prepare(self) -> None:
        self._controller = ClusterController()
        controller = self._controller_ports = await self._listener(CONTROLLER_ID)
        await self._start_controller()
        for node_id in range(self._count):
            clients = free_port()
            settings = node_settings(
                node_id,
                count=self._count,
                clients=clients,
                nodes=await self._listener(node_id),
                controller=controller,
                config=self._config,
            )
            life = BrokerLife(config=settings, directory=None, port=0, is_child=True, origin=None)
            self._lives.append(life)
            self._addresses.append(PeerAddress(HOST, clients))
            self.nodes.append(ClusterNode(node_id, life))

    async def _listener(self, node_id: int) -> ListenerPorts:
        port = free_port()
        return ListenerPorts(port, await self._links.open_proxy(node_id, port))

    async def _end(self) -> None:
        if self._client is not None:
            self._client[1].abort()
        self._links.close()
        if self._controller is not None:
            await self._controller.close()

    def _on_loop(self, function: Callable[[int], None], node_id: int) -> None:
        async def call() -> None:
            function(node_id)

        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        self._thread.call(call())

    async def _answered(
        self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]
    ) -> _Result:
        try:
            return await question(self._asking())
        except ClientError as error:
            raise as_kafka_error(error) from error

    def _asking(self) -> KafkaClient:
        """Return a client of the nodes that respond and have current metadata."""
        usable = tuple(
            address
            for node, address in zip(self.nodes, self._addresses, strict=True)
            if node.is_running and not node.is_paused and node.id not in self._links.isolated
        )
        if not usable:
            raise RuntimeError("no node of the cluster is running")
        if self._client is None or self._client[0] != usable:
            if self._client is not None:
                self._client[1].abort()
            self._client = usable, internal_client(*usable)
        return self._client[1]


def _crash(life: BrokerLife) -> None:
    """Kill a node, but keep its process if possible."""
    if not life.is_paused:
        # The process or its broker may have ended.
        with suppress(ConnectionError, ValueError):
            life.instruct("crash", {})
            return
    life.kill()


def _begin_again(life: BrokerLife) -> None:
    """Start a crashed node, in its process if it is running."""
    if not life.host.is_running:
        life.start()
        return
    try:
        # Only the clock is kept, as in a new process.
        for command in ("start", "remove-fault", "forget-requests"):
            life.instruct(command, {})
    except (ConnectionError, ValueError):
        life.kill()
        raise
