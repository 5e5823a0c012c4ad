"""Settings as checks read them; `Config` (values.py) has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.config.rows.topic import TopicSettings

    # The names below hide the types.
    _Bool = bool
    _Int = int
    _Str = str


class Settings(Protocol):
    """Typed values by config name, and the ones that several checks need."""

    @property
    def node_id(self) -> _Int:
        """The node's id."""
        ...

    @property
    def log_directories(self) -> Sequence[_Str]:
        """Paths of the log directories."""
        ...

    @property
    def protection_requested(self) -> tuple[_Str, ...]:
        """Names of security settings that were given."""
        ...

    def bool(self, name: _Str) -> _Bool:
        """Return the value of a boolean config."""
        ...

    def int(self, name: _Str) -> _Int:
        """Return the value of an integer config."""
        ...

    def str(self, name: _Str) -> _Str:
        """Return the value of a text config."""
        ...

    def optional_str(self, name: _Str) -> _Str | None:
        """Return the value of a text config, or None if it is unset or empty."""
        ...

    def list(self, name: _Str) -> Sequence[_Str]:
        """Return the items of a list config."""
        ...

    def is_set(self, name: _Str) -> _Bool:
        """Return whether a layer sets the config."""
        ...

    def topic_settings(self, overrides: Mapping[_Str, _Str]) -> TopicSettings:
        """Return a topic's settings."""
        ...
