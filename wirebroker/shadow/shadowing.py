"""A shadow, from opening the source and the directory to closing them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import SystemClock
from wirebroker.config.rows.releases import RELEASE_VERSION
from wirebroker.config.sources.sources import load_config
from wirebroker.shadow.copy_directory import CopyDirectory
from wirebroker.shadow.source import Source
from wirebroker.shadow.source_copier import SourceCopier
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from wirebroker.client.kafka_client import KafkaClient

# Open segments; others are opened when needed.
_OPEN_FILES: Final = 256


@asynccontextmanager
async def shadowed(
    client: KafkaClient, is_wanted: Callable[[str, bool], bool], *, path: str, is_once: bool
) -> AsyncGenerator[SourceCopier]:
    """Open a copy; the exit closes it as after a clean stop.

    Args:
        client: The source.
        is_wanted: See Source.
        path: Absolute path of the directory.
        is_once: See Following.

    Raises:
        StartError: The directory cannot be used.
    """
    clock = SystemClock()
    source = Source(client, is_wanted)
    cluster_id = await source.cluster_id()
    flags = {RELEASE_VERSION: await source.release()}
    config = load_config(file=None, environment={}, flags=flags, data_directory=path)
    directory = await CopyDirectory.open(
        path,
        cluster_id=cluster_id,
        config=config,
        clock=clock,
        files=Files(max_open_files=_OPEN_FILES),
    )
    try:
        yield SourceCopier(source, directory, clock=clock, is_once=is_once, cluster_id=cluster_id)
    finally:
        await directory.close()
