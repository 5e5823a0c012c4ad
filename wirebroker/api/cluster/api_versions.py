"""ApiVersions: the supported keys, their versions, and feature levels.

v0 is the response to an unknown version (error 35, net/dispatch.py); v3 client name (KIP-511) and
features (KIP-584), v4 features from level 0, v5 the cluster and node that the client means to reach
(KIP-1242): if it reached another, it bootstraps again.

Source: Kafka's ApiVersionsRequest and ApiVersionManager.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from wirebroker.api.registry import enabled_keys, handles_raw
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.api_versions import (
    ANY_NODE,
    ApiVersionsRequest,
    encode_api_versions,
    parse_api_versions,
)
from wirebroker.coordinator.controller.features.feature_control import (
    KRAFT_VERSION,
    SUPPORTED_FEATURES,
)
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Reply, Request

FIRST_NAMED_CLIENT = 3

# KIP-511.
_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles_raw(ApiKey.API_VERSIONS, permissions=(), cost=Cost.BOUNDED)
def api_versions(broker: Broker, request: Request) -> Reply:
    """Return all keys that this broker serves."""
    own_ids = (broker.cluster_id, broker.node_id)
    return answer_versions(request, enabled_keys(broker.config), broker.metadata, own_ids)


class _Metadata(Protocol):
    """See quorum/image/metadata_follower.py."""

    image: ClusterImage
    kraft_version: int


def answer_versions(
    request: Request,
    keys: Iterable[ApiKey],
    metadata: _Metadata,
    own_ids: tuple[str, int] | None = None,
) -> Reply:
    """Return these keys, and the features of the cluster.

    A client must mean the cluster and node ids `own_ids`, unless that is None.
    """
    version, image = request.version, metadata.image
    features = list(image.features.items())
    if metadata.kraft_version:
        features.append((KRAFT_VERSION, metadata.kraft_version))
    body = parse_api_versions(request.frame, request.position, version)
    if version >= FIRST_NAMED_CLIENT:
        error = _error_of(body, own_ids)
        if error:
            return [encode_api_versions(version, api_keys=(), error_code=error)]
        request.session.client_software_name = body.client_software_name
        request.session.client_software_version = body.client_software_version
    return [
        encode_api_versions(
            version,
            api_keys=[
                (key, SPOKEN_VERSIONS[key].min_version, SPOKEN_VERSIONS[key].max_version)
                for key in keys
            ],
            supported_features=[(name, *levels) for name, levels in SUPPORTED_FEATURES.items()],
            finalized_features=features,
            finalized_features_epoch=image.offset,
        )
    ]


def _error_of(body: ApiVersionsRequest, own_ids: tuple[str, int] | None) -> ErrorCode:
    software = (body.client_software_name, body.client_software_version)
    has_cluster, has_node = body.cluster_id is not None, body.node_id != ANY_NODE
    if not all(map(_CLIENT_NAME.fullmatch, software)) or has_cluster != has_node:
        return ErrorCode.INVALID_REQUEST
    if own_ids is not None and has_cluster and (body.cluster_id, body.node_id) != own_ids:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE
