"""The sections of a cluster that are shown only if the cluster has what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.console.delivery.delivery_state import has_delivery
from wirebroker.console.model.http_settings import TEST_URL, has_metrics_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.console.model.collector import Collector


def _has_test_mode(collector: Collector) -> bool:
    return bool(collector.settings.properties.get(TEST_URL))


def _has_metrics(collector: Collector) -> bool:
    return has_metrics_urls(collector.settings.properties)


_CONDITIONS: Final[Mapping[str, Callable[[Collector], bool]]] = {
    "clients": _has_metrics,
    "delivery": lambda collector: has_delivery(collector.snapshot),
    "testing": _has_test_mode,
}


def is_section_shown(key: str, collector: Collector) -> bool:
    """Return whether a cluster has what a section shows."""
    return key not in _CONDITIONS or _CONDITIONS[key](collector)
