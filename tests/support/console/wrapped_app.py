"""The parts of a console's application that a test needs to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirebroker.console.pages.page import Console


def unwrapped(app: Any) -> Any:
    """Return the Starlette application inside the wrappers of `make_app`."""
    while not hasattr(app, "state"):
        app = app._app
    return app


def console_in(app: Any) -> Console:
    """Return the console of an application."""
    console: Console = unwrapped(app).state.console
    return console
