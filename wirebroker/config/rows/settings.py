"""The part of `Config` (values.py) that checks use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.rows.topic import TopicSettings

    # The methods have the types' names.
    _Bool = bool
    _Int = int
    _Str = str


class Settings(Protocol):
    """See Config."""

    @property
    def node_id(self) -> _Int:
        """See Config."""
        ...

    @property
    def log_directories(self) -> Sequence[_Str]:
        """See Config."""
        ...

    @property
    def protection_requested(self) -> tuple[_Str, ...]:
        """Names of security settings that were given."""
        ...

    def bool(self, name: _Str) -> _Bool:
        """See Config."""
        ...

    def int(self, name: _Str) -> _Int:
        """See Config."""
        ...

    def str(self, name: _Str) -> _Str:
        """See Config."""
        ...

    def optional_str(self, name: _Str) -> _Str | None:
        """See Config."""
        ...

    def list(self, name: _Str) -> Sequence[_Str]:
        """See Config."""
        ...

    def set_or_default(self, name: _Str) -> ConfigValue:
        """See Config."""
        ...

    def is_set(self, name: _Str) -> _Bool:
        """See Config."""
        ...

    def topic_settings(self, overrides: Mapping[_Str, _Str]) -> TopicSettings:
        """See Config."""
        ...
