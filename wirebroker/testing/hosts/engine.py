"""A container, by testcontainers for Python.

It finds the engine, and removes the containers of killed test runs.
"""

from __future__ import annotations

import gc
import io
import shutil
import tarfile
import warnings
from typing import TYPE_CHECKING, Any, Final

from wirebroker.config import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NOT_HERE: Final = "testcontainers is not installed"
_INSTALL: Final = "pip install 'wirebroker[testcontainers]'"
_STOP_S: Final = 30
# Ports are reached at the engine's host.
_BY_THE_HOST: Final = "docker_host"
# The image's user id.
_USER: Final = 1000


def why_no_engine() -> str | None:
    """Return why no container can start; None if one can."""
    try:
        from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415 - an extra
    except ImportError:
        return f"{_NOT_HERE} ({_INSTALL})"
    try:
        client: Any = DockerClient()
        client.client.ping()
        client.client.close()
    except Exception as error:  # noqa: BLE001 - docker's, requests', urllib's
        reason = f"no container engine responds: {error}"
    else:
        return None
    _let_sockets_go()
    return reason


def _let_sockets_go() -> None:
    """Collect docker's sockets, of which Python would warn in a later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class Container:
    """One container; its methods block and raise StartError."""

    def __init__(self, image: str) -> None:
        try:
            from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - an extra
        except ImportError:
            raise StartError(_NOT_HERE, _INSTALL) from None
        refusal: str | None = None
        try:
            self._container: Any = DockerContainer(image)
        except Exception as error:  # noqa: BLE001 - see why_no_engine
            refusal = str(error)
        if refusal is not None:
            _let_sockets_go()
            raise StartError("no container engine responds", refusal)
        self._image = image

    def known_host(self) -> str | None:
        """Return the host of bound ports; None if only the start decides it."""
        client = self._container.get_docker_client()
        mode = str(client.get_connection_mode().value)
        return str(client.host()) if mode == _BY_THE_HOST else None

    def start(
        self,
        *,
        command: Sequence[str],
        environment: Mapping[str, str],
        bound_ports: Mapping[int, int],
        network: Any = None,
        alias: str,
    ) -> None:
        """Create and start the container.

        `bound_ports` maps container ports to the engine's; `alias` is the host name in the
        testcontainers Network.
        """
        self._container.with_command(list(command))
        for variable, value in environment.items():
            self._container.with_env(variable, value)
        for inside, outside in bound_ports.items():
            self._container.with_bind_ports(inside, outside)
        if network is not None:
            self._container.with_network(network).with_network_aliases(alias)
        try:
            self._container.start()
        except Exception as error:  # see why_no_engine
            self.remove()
            raise StartError(f"the engine cannot start {self._image}", str(error)) from error

    def address(self, port: int) -> tuple[str, int]:
        """Return the host and port that reach a container port."""
        return (
            str(self._container.get_container_host_ip()),
            int(self._container.get_exposed_port(port)),
        )

    def has_ended(self) -> bool:
        """Return whether it has ended."""
        self._container.reload()
        return str(self._container.status) in {"exited", "dead"}

    def start_again(self) -> None:
        """Start it with its files."""
        self._container.get_wrapped_container().start()

    def stop(self) -> None:
        """Send SIGTERM."""
        self._container.get_wrapped_container().stop(timeout=_STOP_S)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._container.get_wrapped_container().kill()

    def pause(self) -> None:
        """Freeze it."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Continue it."""
        self._container.get_wrapped_container().unpause()

    def remove(self) -> None:
        """Remove it with its files, if it was created."""
        self._container.stop(force=True, delete_volume=True)

    def log_lines(self, most: int) -> list[str]:
        """Return its last output."""
        printed: bytes = self._container.get_wrapped_container().logs(tail=most)
        return printed.decode(errors="replace").splitlines()

    def put_file(self, folder: str, name: str, content: bytes) -> None:
        """Write a file into an existing folder."""
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(_owned(member), io.BytesIO(content))
        self._put(folder, archive)

    def put_folder(self, source: Path, target: str) -> None:
        """Upload a folder, replacing `target`."""
        self.run(["bash", "-c", 'rm -rf "$0" && mkdir -p "$0"', target])
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(source, arcname=".", filter=_owned)
        self._put(target, archive)

    def take_folder(self, source: str, target: Path) -> None:
        """Download a folder."""
        pieces, _ = self._container.get_wrapped_container().get_archive(f"{source}/.")
        archive = io.BytesIO(b"".join(pieces))
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                _write(tar, member, target)

    def run(self, command: Sequence[str]) -> None:
        """Run a command; raise StartError if it fails."""
        status, output = self._container.exec(list(command))
        if status:
            printed: bytes = output
            raise StartError(f"{command[0]} ended with {status}", printed.decode(errors="replace"))

    def _put(self, folder: str, archive: io.BytesIO) -> None:
        self._container.get_wrapped_container().put_archive(folder, archive.getvalue())


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    path = target / member.name
    if ".." in path.parts or not path.is_relative_to(target):
        raise StartError(f"{member.name} is not a path in a snapshot", "take another snapshot")
    content = tar.extractfile(member) if member.isreg() else None
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif content is not None:
        with content, path.open("wb") as written:
            shutil.copyfileobj(content, written)


def _owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = _USER
    member.mode |= 0o600
    return member
