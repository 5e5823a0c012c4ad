"""A controller with its metadata log in a directory, for tests."""

import asyncio

from tests.support.coordinators.kit import request
from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config import Config
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.channel.controller_channel import LocalChannel
from wirebroker.quorum.controller.membership import alone
from wirebroker.quorum.controller.quorum_controller import QuorumController
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME
from wirebroker.storage.files import Files

DIRECTORY_ID = bytes([7]) * 16
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


class Node:
    """A controller with its metadata log in a directory."""

    def __init__(self, directory, **settings):
        self.directory = str(directory)
        self.log_directory = f"{directory}/{DIRECTORY_NAME}"
        self.config = Config(
            {"log.dirs": "data"} | {key.replace("_", "."): text for key, text in settings.items()}
        )

    async def open(self):
        rules = Controller(self.config, node_id=1, cluster_id=CLUSTER_ID)
        return await QuorumController.open(
            self.directory,
            files=Files(),
            clock=SystemClock(),
            rules=rules,
            membership=alone(1, DIRECTORY_ID),
        )

    async def start(self):
        controller = await self.open()
        await self.join(controller)
        return controller

    async def join(self, controller):
        channel = LocalChannel(controller)
        lifecycle = BrokerLifecycle(channel, controller.follower, node_id=1)
        await lifecycle.register(
            cluster_id=CLUSTER_ID,
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092, 0)],
            log_directories=[DIRECTORY_ID],
        )
        await lifecycle.unfence()
        return lifecycle

    async def create(self, controller, *topics):
        creation = ControllerRequest(ApiKey.CREATE_TOPICS, 7, request(topics=list(topics)))
        answer = await controller.submit(controller.rules.operation(creation))
        return answer["topics"]

    def files(self, suffix):
        return sorted(
            name for name in Files().list_directory(self.log_directory) if name.endswith(suffix)
        )


def write(*records):
    """Return an operation that writes these records."""

    def operation(image, now_ms):
        yield
        return ControllerResult(image.offset, list(records))

    return operation


NO_OP = metadata_record(RecordType.NO_OP)


def snapshotting(directory):
    return Node(directory, metadata_log_max_record_bytes_between_snapshots="1500")


async def settle(log):
    writer = log.node.snapshots.writer
    while writer.is_busy:
        await asyncio.shield(writer.settle())
        await next_turn()
