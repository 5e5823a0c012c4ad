"""ApiVersions: the keys and versions that this broker answers to, and its feature levels.

v0 is what an unknown version is answered with (error 35, net/dispatch.py); v1 throttle time, v3
flexible with the client's name (KIP-511) and features (KIP-584), v4 features from level 0.

Source: Kafka's ApiVersionsRequest and ApiVersionManager.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wirebroker.api.registry import handles_raw, registered_keys
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.api_versions import encode_api_versions, parse_api_versions
from wirebroker.coordinator.controller.feature_control import SERVED_FEATURES
from wirebroker.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.broker import Broker
    from wirebroker.coordinator.controller.cluster_image import ClusterImage
    from wirebroker.request import Reply, Request

FIRST_NAMED_CLIENT = 3

# What a client may call itself (KIP-511).
_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles_raw(ApiKey.API_VERSIONS, needs=(), cost=Cost.BOUNDED)
def api_versions(broker: Broker, request: Request) -> Reply:
    """Answer with every key that has a handler."""
    return answer_versions(request, registered_keys(), broker.metadata.image)


def answer_versions(request: Request, keys: Iterable[ApiKey], image: ClusterImage) -> Reply:
    """Answer with these keys, and the cluster's features as an image has them."""
    version = request.version
    wanted = parse_api_versions(request.frame, request.position, version)
    if version >= FIRST_NAMED_CLIENT:
        name, software_version = wanted
        if not (_CLIENT_NAME.fullmatch(name) and _CLIENT_NAME.fullmatch(software_version)):
            error = ErrorCode.INVALID_REQUEST
            return [encode_api_versions(version, api_keys=(), error_code=error)]
        request.session.client_software_name = name
        request.session.client_software_version = software_version
    return [
        encode_api_versions(
            version,
            api_keys=[
                (key, SPOKEN_VERSIONS[key].min_version, SPOKEN_VERSIONS[key].max_version)
                for key in keys
            ],
            supported_features=[(name, *levels) for name, levels in SERVED_FEATURES.items()],
            finalized_features=list(image.features.items()),
            finalized_features_epoch=image.offset,
        )
    ]
