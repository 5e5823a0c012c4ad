"""A metadata log in a directory, with its controller, for the tests of both."""

import asyncio

from tests.unit.coordinator.kit import request
from wirebroker.clock import SystemClock, next_turn
from wirebroker.cluster.metadata_log import MetadataLog
from wirebroker.cluster.metadata_store import DIRECTORY_NAME
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config import Config
from wirebroker.coordinator.cluster_image import Endpoint
from wirebroker.coordinator.controller import Controller
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.storage.files import Files

DIRECTORY_ID = bytes(15) + b"\x07"


class Node:
    """A metadata log in a directory, with its controller."""

    def __init__(self, directory, **settings):
        self.directory = str(directory)
        self.log_directory = f"{directory}/{DIRECTORY_NAME}"
        self.config = Config(
            {"log.dirs": "data"} | {key.replace("_", "."): text for key, text in settings.items()}
        )
        self.controller = Controller(self.config, node_id=1)

    async def open(self):
        return await MetadataLog.open(
            self.directory, files=Files(), clock=SystemClock(), config=self.config, node_id=1
        )

    async def start(self):
        log = await self.open()
        await log.register(
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092, 0)],
            log_directories=[DIRECTORY_ID],
        )
        await log.unfence()
        return log

    def create(self, log, *topics):
        return log.submit(self.controller.create_topics(request(topics=list(topics))))

    def files(self, suffix):
        return sorted(
            name for name in Files().list_directory(self.log_directory) if name.endswith(suffix)
        )


def write(*records):
    """Return an operation that writes these records."""

    def operation(image):
        yield
        return ControllerResult(image.offset, list(records))

    return operation


NO_OP = metadata_record(RecordType.NO_OP)


def snapshotting(directory):
    return Node(directory, metadata_log_max_record_bytes_between_snapshots="1500")


async def settle(log):
    """Wait for a snapshot that is being written."""
    while log._snapshotter is not None:
        await asyncio.shield(log._snapshotter)
        await next_turn()
