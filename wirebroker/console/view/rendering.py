"""Templates (jinja2). Everything is escaped: clusters contain names and records of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2

from wirebroker.base.text import counted, few_of
from wirebroker.base.version import version_text
from wirebroker.console.records.views import name_view, text_view
from wirebroker.console.view import formats, links, plots

if TYPE_CHECKING:
    from wirebroker.console.view.assets import Assets

_FOLDER: Final = Path(__file__).resolve().parent.parent / "templates"
_FILTERS: Final = {
    "bytes_text": text_view,
    "header_name": name_view,
    "number": formats.number,
    "compact": formats.compact,
    "size": formats.size,
    "rate": formats.rate,
    "size_rate": formats.size_rate,
    "sentence": formats.sentence,
    "signed_rate": formats.signed_rate,
    "duration": formats.duration,
    "duration_ms": formats.duration_ms,
    "iso_time": formats.iso_time,
    "plain_time": formats.plain_time,
}


class Templates:
    """The templates of all pages.

    Attributes:
        assets: The static files.
    """

    __slots__ = ("_environment", "assets")

    def __init__(self, assets: Assets) -> None:
        self.assets = assets
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            cache_size=-1,
            auto_reload=False,
        )
        # jinja2 declares these as dictionaries of its own values.
        filters: dict[str, Any] = environment.filters  # pyright: ignore[reportUnknownMemberType]
        filters.update(_FILTERS)
        names: dict[str, Any] = environment.globals  # pyright: ignore[reportAssignmentType]
        names.update(
            asset=assets.url,
            change_url=links.change_url,
            changed_query=links.changed_query,
            cluster_url=links.cluster_url,
            counted=counted,
            few_of=few_of,
            meter=plots.meter,
            percent=formats.percent,
            share_of=formats.share_of,
            sparkline=plots.sparkline,
            unknown=formats.UNKNOWN,
            version=version_text(),
        )
        self._environment = environment

    def render(self, name: str, /, **values: Any) -> str:
        """Return a page."""
        return self._environment.get_template(name).render(**values)
