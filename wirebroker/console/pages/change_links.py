"""From a change to the page of what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.console.pages.page import SECTIONS
from wirebroker.console.view.links import cluster_url

if TYPE_CHECKING:
    from wirebroker.console.changes.change import ChangeKind
    from wirebroker.console.model.collector import Collector

_PATHS: Final = {key: path for path, _, key in SECTIONS}
# Query parameters of pages that are not `name`.
_PARAMETERS: Final = {"broker": "id", "broker/loggers": "id"}


def target_url(collector: Collector, kind: ChangeKind, target: str) -> str:
    """Return the page of what a change is about; the section's list if there is no such page."""
    cluster, snapshot = collector.settings.name, collector.snapshot
    page = kind.page
    if page is not None and target:
        is_missing = (page.startswith("topic") and target not in snapshot.topics) or (
            page.startswith("group") and target not in snapshot.groups
        )
        if not is_missing:
            return cluster_url(cluster, page, **{_PARAMETERS.get(page, "name"): target})
    return cluster_url(cluster, _PATHS.get(kind.section, ""))
