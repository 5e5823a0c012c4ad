"""AddRaftVoter and RemoveRaftVoter, which are refused: the voter is static (kraft.version 0).

Source: Kafka's AddVoterHandler, RemoveVoterHandler; KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.coordinator.operation import Operation


def change_voters() -> Operation[dict[str, Any]]:
    """Refuse the request.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    yield
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        "The voters of this cluster are static: its kraft.version is 0.",
    )
