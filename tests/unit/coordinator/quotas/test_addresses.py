"""Normalization of addresses."""

from __future__ import annotations

import pytest

from wirebroker.coordinator.quotas.addresses import normal_address
from wirebroker.coordinator.quotas.quota_entity import ClientQuotas, connection_rates


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0:0::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::0001", "::1"),
        ("[::1]", "::1"),
        ("2001:DB8::A", "2001:db8::a"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::FFFF:7f00:1]", "127.0.0.1"),
        ("[127.0.0.1]", None),
        ("localhost", None),
        ("::zz", None),
        ("[::1", None),
        ("", None),
    ],
)
def test_addresses_are_formatted_as_by_sockets(text: str, address: str | None) -> None:
    assert normal_address(text) == address


def test_an_address_has_the_lowest_of_its_rates() -> None:
    quotas: ClientQuotas = {
        (("ip", "0:0:0:0:0:0:0:1"),): {"connection_creation_rate": 5.0},
        (("ip", "::0001"),): {"connection_creation_rate": 3.0},
        (("ip", "::ffff:127.0.0.1"),): {"connection_creation_rate": 2.0},
        (("ip", None),): {"connection_creation_rate": 9.0},
        (("user", "::2"),): {"producer_byte_rate": 1.0},
        (("ip", "::3"),): {"producer_byte_rate": 1.0},
    }
    assert connection_rates(quotas) == {"::1": 3.0, "127.0.0.1": 2.0, None: 9.0}
