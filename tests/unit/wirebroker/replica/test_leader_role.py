"""The outcomes of a leader's ISR change."""

from __future__ import annotations

import pytest

from tests.support.replicas.roles import partition_image
from wirebroker.replica.leader_role import LeaderRole


@pytest.fixture
def role():
    """Return the role of node 1 of three, which has requested node 3's return to the ISR."""
    image = partition_image(partition_epoch=5, replicas=(1, 2, 3), isr=(1, 2))
    role = LeaderRole(image, start_offset=0, now_ms=0)
    role.begin_isr_change({1, 2, 3})
    assert role.maximal_isr == (1, 2, 3)
    yield role
    role.check()


def test_response_without_a_change_completes_the_isr_change(role):
    assert role.accept((1, 2), partition_epoch=5)
    assert (role.change, role.isr, role.maximal_isr) == (None, (1, 2), (1, 2))
    assert role.begin_isr_change({1, 2, 3}).partition_epoch == 5


def test_response_older_than_the_metadata_is_ignored(role):
    image = partition_image(partition_epoch=6, replicas=(1, 2, 3), isr=(1, 2, 3))
    assert role.follow(image, now_ms=1)
    assert not role.accept((1, 2, 3), partition_epoch=6)
    role.begin_isr_change({1, 2})
    assert not role.accept((1, 2, 3), partition_epoch=5)
    assert role.maximal_isr == (1, 2, 3)
