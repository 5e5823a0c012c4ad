"""A broker without sockets and files, for the tests of the admin handlers.

`answer` uses the codecs as dispatch does, so each test also encodes the response in its version.
"""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.coordinators.kit import image_of, one_broker
from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY
from wirebroker.base.clock import SystemClock, in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.config import Config
from wirebroker.coordinator.controller.controller import Controller, refusal
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.outcome import Moment
from wirebroker.quorum.channel.controller_channel import LocalChannel
from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
from wirebroker.quotas.client_quotas import ClientQuotas
from wirebroker.request.request import Request
from wirebroker.request.session import Session

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.requests.request import ControllerRequest


load_handlers()  # a test may be run alone


class InstantMetadata:
    def __init__(self, rules: Controller, *records: MetadataRecord) -> None:
        self.rules = rules
        self.image = one_broker(*records)
        self.submitted = 0

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        try:
            result = complete(self.rules.operation(request)(self.image, Moment(0, 0)))
        except KafkaError as error:
            return in_one_go(refusal(request, error))
        await asyncio.sleep(0)  # noqa: TID251 - as the real one, it does not answer at once
        self.submitted += 1
        self.image = image_of(*result.records, base=self.image)
        return result.response


def make_broker(*records: MetadataRecord, **settings: str) -> Any:
    """Return broker 1 of a cluster with these records."""
    config = Config(
        {"log.dirs": "data"} | {name.replace("_", "."): value for name, value in settings.items()}
    )
    cluster_id = "MkU3OEVBNTcwNTJENDM2Qk"
    rules = Controller(config, node_id=1, cluster_id=cluster_id)
    metadata: Any = InstantMetadata(rules, *records)
    channel = LocalChannel(metadata)
    lifecycle: Any = SimpleNamespace(node_id=1, broker_epoch=metadata.image.brokers[1].epoch)
    return SimpleNamespace(
        config=config,
        clock=SystemClock(),
        node_id=1,
        cluster_id=cluster_id,
        metadata=metadata,
        controller=channel,
        producer_ids=ProducerIdSupply(channel, lifecycle),
        auto_listeners=frozenset(),
        authorization=None,
        quotas=ClientQuotas(config, SystemClock()),
    )


CONNECTION = Session(
    connection_id="c",
    peer="client:1",
    listener_name="PLAINTEXT",
    local_host="here",
    local_port=9092,
)


async def answer_soon(broker: Any, key: ApiKey, version: int, **body: Any) -> Any:
    reply = begin(broker, key, version, **body)
    if inspect.isawaitable(reply):
        reply = await reply
    data = b"".join(reply) if _handler(key).is_raw else encode_response(key, version, reply)
    return decode_response(key, version, data)


def begin(broker: Any, key: ApiKey, version: int, **body: Any) -> Any:
    """Call a request's handler; return what it returns."""
    frame = memoryview(bytearray(encode_request(key, version, body)))
    request = Request(key, version, 7, "client", frame, 0, CONNECTION)
    handler = _handler(key)
    if handler.is_raw:
        return handler.function(broker, request)
    return handler.function(broker, request, decode_request(key, version, frame, 0))


def _handler(key: ApiKey) -> Any:
    [handler] = [candidate for candidate in REGISTRY.handlers() if candidate.key is key]
    return handler


def answer(broker: Any, key: ApiKey, version: int, **body: Any) -> Any:
    """Run one request and return its decoded response."""
    return asyncio.run(answer_soon(broker, key, version, **body))
