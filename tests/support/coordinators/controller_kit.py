"""A controller without a log, for tests that send requests as fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.kit import CONFIG, image_of
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.coordinator.controller.controller import Controller, refusal
from wirebroker.coordinator.controller.features.feature_control import SUPPORTED_FEATURES
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.requests.request import ControllerRequest, Requester
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.outcome import Moment

if TYPE_CHECKING:
    from wirebroker.codecs.envelope import Principal
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


class InstantController:
    """The controller's rules with an image, a time (`now_ms`) and a requester (`principal`)."""

    def __init__(
        self, *records: MetadataRecord, node_id: int = 100, config: Config = CONFIG
    ) -> None:
        self.rules = Controller(config, node_id=node_id, cluster_id=CLUSTER_ID)
        self.principal: Principal | None = None
        self.image = image_of(*records) if records else ClusterImage()
        self.now_ms = 0
        self.records: list[MetadataRecord] = []
        self.rules.sessions.begin(self.image, self.now_ms)

    def ask(self, key: ApiKey, version: int | None = None, **fields: Any) -> dict[str, Any]:
        """Handle a request; its records are in `records`."""
        message = request_message(key)
        newest = message.versions[-1] if version is None else version
        requester = None if self.principal is None else Requester(self.principal)
        request = ControllerRequest(key, newest, message.struct_class(**fields), requester)
        now = Moment(self.now_ms, self.now_ms)
        try:
            result = complete(self.rules.operation(request)(self.image, now))
        except KafkaError as error:
            self.records = []
            return in_one_go(refusal(request, error))
        self.write(result.records)
        return result.response

    def write(self, records: list[MetadataRecord]) -> None:
        self.records = records
        self.image = image_of(*records, base=self.image)

    def register(self, node_id: int, **fields: Any) -> dict[str, Any]:
        features = [
            {"name": name, "min_supported_version": 0, "max_supported_version": highest}
            for name, (_, highest) in SUPPORTED_FEATURES.items()
        ]
        values: dict[str, Any] = {
            "broker_id": node_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": bytes([node_id]) * 16,
            "listeners": [{"name": "P", "host": "h", "port": 1, "security_protocol": 0}],
            "features": features,
            "rack": None,
            "log_dirs": [bytes([node_id]) * 15 + b"\x09"],
        }
        return self.ask(ApiKey.BROKER_REGISTRATION, **{**values, **fields})

    def heartbeat(self, node_id: int, **fields: Any) -> dict[str, Any]:
        """Send the heartbeat of a caught-up broker that requests to be unfenced."""
        values = {
            "broker_id": node_id,
            "broker_epoch": self.image.brokers[node_id].epoch,
            "current_metadata_offset": self.image.offset - 1,
            "want_fence": False,
            "want_shut_down": False,
        }
        return self.ask(ApiKey.BROKER_HEARTBEAT, **{**values, **fields})

    def serve(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.register(node_id)
            assert not self.heartbeat(node_id)["is_fenced"]

    def create(self, name: str, *replicas: list[int]) -> None:
        assignments = [
            {"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)
        ]
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
        }
        [result] = self.ask(ApiKey.CREATE_TOPICS, topics=[topic])["topics"]
        assert not result.get("error_code"), result
