"""The key for salts of unknown users is the same on each node and after restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.kit import broker, image_of
from wirebroker.security.sasl.sasl_state import SaltKey

if TYPE_CHECKING:
    from wirebroker.codecs.metadata_records import MetadataRecord

LOW, HIGH = b"a" * 16, b"b" * 16


def key(cluster_id: str, *records: MetadataRecord) -> bytes:
    image = image_of(*records)
    return SaltKey(lambda: image, cluster_id).find()


def silent(node_id: int) -> MetadataRecord:
    """Return a broker that reports no directories (metadata.version below 3.7)."""
    return broker(node_id, log_directories=())


def test_salt_key_is_the_lowest_directory_of_the_first_broker_with_any() -> None:
    other_brokers = broker(9, log_directories=(b"0" * 16,)), broker(8, log_directories=(HIGH, LOW))
    assert key("cluster", silent(7), *other_brokers) == LOW


@pytest.mark.parametrize("brokers", [(), (silent(1),), (silent(2), silent(1))])
def test_salt_key_without_directories_depends_on_the_cluster_only(
    brokers: tuple[MetadataRecord, ...],
) -> None:
    assert key("one", *brokers) == key("one")
    assert key("one", *brokers) != key("another", *brokers)
    assert len(key("one")) >= 16
