"""`wirebroker join` as a process: a broker that joins a cluster, perhaps under an id it chooses.

If another broker registers that id first, or a voter has it (which clusters below 3.7 do not show),
it restarts with a higher one and an empty directory.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.broker.log_settings import configure_as
from wirebroker.broker.serve_process import run
from wirebroker.broker.server import Server
from wirebroker.broker.worker_layout import check_alone
from wirebroker.config.protection import check_protection
from wirebroker.quorum.membership.join import (
    config_of_member,
    configured_node_id,
    formatted_node_id,
    free_node_id,
)
from wirebroker.quorum.membership.member_lifecycle import NodeIdTakenError
from wirebroker.quorum.membership.voting_join import cluster_id_for_voter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wirebroker.config import Config

LOGGER = logging.getLogger(__name__)


class JoinProcess:
    """Arguments of `wirebroker join` except the id."""

    def __init__(
        self,
        controllers: str,
        *,
        flags: Mapping[str, str],
        file: Path | None,
        data_directory: str | None,
        host: str | None,
        port: int | None,
        voter: str | None = None,
    ) -> None:
        self._controllers = controllers
        # A voter that has voted before needs no other controller to start.
        self._begins_to_vote = (
            voter is not None and formatted_node_id(flags, data_directory, file) is None
        )
        self._cluster_id: str | None = None
        self._node_id_given = partial(configured_node_id, flags, data_directory, file)
        self._config = partial(
            config_of_member,
            controllers,
            flags=flags,
            file=file,
            data_directory=data_directory,
            host=host,
            port=port,
            voter=voter,
        )

    def run(self, node_id: int | None, *, port_file: Path | None) -> int:
        """Serve until stopped; return the exit status.

        Without `node_id`, the directory or the file has the id, or it is a free one.

        Raises:
            ConfigError: An argument cannot be used.
            StartError: The broker cannot start.
        """
        if node_id is None:
            node_id = self._node_id_given()
        if self._begins_to_vote:
            self._find_cluster_id(node_id)
        if node_id is None:
            return self._run_as_any(port_file)
        return run(self._checked(node_id), port_file=port_file)

    def _run_as_any(self, port_file: Path | None) -> int:
        build = partial(Server, has_chosen_id=True)
        # Before waiting for controllers.
        settings = self._checked(1)
        wait_s = settings.int("initial.broker.registration.timeout.ms") / 1000
        configure_as(settings)
        LOGGER.info("looking up a free node id at controllers %s", self._controllers)
        node_id = free_node_id(self._controllers, settings, timeout_s=wait_s)
        while True:
            config = self._checked(node_id)
            try:
                return run(config, port_file=port_file, build=build)
            except NodeIdTakenError:
                taken_id = node_id
                node_id = free_node_id(
                    self._controllers, settings, timeout_s=wait_s, above=taken_id
                )
                LOGGER.info("node id %d is in use: trying %d", taken_id, node_id)

    def _find_cluster_id(self, node_id: int | None) -> None:
        """Look up the cluster that this node's controller becomes a part of."""
        settings = self._checked(1 if node_id is None else node_id)
        wait_s = settings.int("initial.broker.registration.timeout.ms") / 1000
        configure_as(settings)
        LOGGER.info("looking up the quorum at controllers %s", self._controllers)
        self._cluster_id = cluster_id_for_voter(self._controllers, settings, timeout_s=wait_s)

    def _checked(self, node_id: int) -> Config:
        config = self._config(node_id=node_id, cluster_id=self._cluster_id)
        check_protection(config)
        check_alone(config)
        return config
