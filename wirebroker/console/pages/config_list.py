"""A list of configs with documentation: those that are set, or all, by a part of the name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.console.pages.page import Answer


class ConfigList(NamedTuple):
    """The chosen configs of `total`, or the failure."""

    rows: list[ConfigEntry]
    total: int
    set_count: int
    search: str
    is_all: bool
    failure: str | None


def chosen_configs(answer: Answer[list[ConfigEntry]], parameters: Mapping[str, str]) -> ConfigList:
    """Choose configs by the parameters `config` (part of a name) and `all`."""
    search = parameters.get("config", "").strip()[:100]
    configs = answer.value or []
    changed = [config for config in configs if config.is_set]
    is_all = parameters.get("all") == "1" or bool(search)
    rows = configs if is_all else changed
    needle = search.casefold()
    return ConfigList(
        [row for row in rows if needle in row.name.casefold()],
        len(configs),
        len(changed),
        search,
        is_all,
        answer.failure,
    )
