"""The user of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.console.login.grants import Grants
    from wirebroker.console.login.sessions import LoginSession


class Viewer(NamedTuple):
    """The user of a request, by cookie or by token.

    Attributes:
        name: The user's or token's name; None without a login.
        grants: The user's roles.
        address: Of the browser or program.
        cookie: The value of the browser's cookie; empty for a token.
        form_token: The token of this browser's forms.
        session: The session of a logged-in user.
        is_program: Whether the request has a token of the HTTP interface.
    """

    name: str | None
    grants: Grants
    address: str
    cookie: str = ""
    form_token: str = ""
    session: LoginSession | None = None
    is_program: bool = False
