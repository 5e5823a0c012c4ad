"""Probes of dynamic configs of share groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import probe
from wirebroker.share.dead_letter_topic import topic_problem

if TYPE_CHECKING:
    from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import World

_CREATES = "errors.deadletterqueue.auto.create.topics.enable"
_PREFIX = "errors.deadletterqueue.topic.name.prefix"


def _problem(w: World, topic: str) -> str | None:
    configs = w.broker.shares.configs
    return topic_problem(configs.config, configs.image, "g", topic)


@probe(_CREATES)
async def _creation(w: World) -> None:
    assert "auto create is disabled" in (_problem(w, "dlq.t") or "")
    await w.set((_CREATES, "true"))
    assert _problem(w, "dlq.t") is None


@probe(_PREFIX)
async def _prefix(w: World) -> None:
    await w.set((_CREATES, "true"))
    assert "prefix: dlq." in (_problem(w, "dead.t") or "")
    await w.set((_PREFIX, "dead."))
    assert _problem(w, "dead.t") is None
