"""The login page, logging in and out."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse, RedirectResponse

from wirebroker.console.audit.audit_entry import AuditEntry
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.login.access import LoginError
from wirebroker.console.pages.page import console_of, viewer_of
from wirebroker.console.pages.request_body import SMALL_BODY_BYTES, sent_form

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger("wirebroker")

LOGIN_PATH: Final = "/login"
LOGOUT_PATH: Final = "/logout"
_START: Final = "/"
_LOCKED: Final = "Too many logins of this address failed: it is locked out for a minute."
_MOST_NAME_CHARACTERS: Final = 64


async def login_page(request: Request) -> Response:
    """Show the login page; a logged-in user continues to the page of `next`."""
    target = next_page(request.query_params.get("next", ""))
    if not _needs_login(request):
        return RedirectResponse(target, status_code=303)
    return _page(request, target)


async def log_in(request: Request) -> Response:
    """Log in, and continue to the page that the user wanted."""
    form = await sent_form(request, most_bytes=SMALL_BODY_BYTES)
    target = next_page(form.get("next", ""))
    if not _needs_login(request):
        return RedirectResponse(target, status_code=303)
    viewer = viewer_of(request)
    name = form.get("name", "").strip()[:_MOST_NAME_CHARACTERS]
    try:
        session_id = await console_of(request).access.log_in(
            name, form.get("password", ""), viewer.address
        )
    except LoginError as error:
        if not error.retry_s:  # refusals without a check are not noted: they cost too little
            failed = AuditEntry("login-failed", error.user, viewer.address, message=str(error))
            await _note(request, failed)
        if error.locks_out:
            await _note(request, AuditEntry("locked-out", None, viewer.address, message=_LOCKED))
        return _page(request, target, name=name, error=error)
    await _note(request, AuditEntry("login", name, viewer.address))
    request.scope["new_cookie"] = session_id
    return RedirectResponse(target, status_code=303)


async def log_out(request: Request) -> Response:
    """End the session."""
    await sent_form(request, most_bytes=SMALL_BODY_BYTES)
    viewer = viewer_of(request)
    if viewer.session is not None:
        console_of(request).access.log_out(viewer)
        await _note(request, AuditEntry("logout", viewer.name, viewer.address))
    request.scope["new_cookie"] = ""
    return RedirectResponse(LOGIN_PATH, status_code=303)


def next_page(text: str) -> str:
    """Return a page of this console; the start for any other address."""
    is_own = text.startswith("/c/") and "\\" not in text and text.isprintable()
    return text if is_own else _START


def _needs_login(request: Request) -> bool:
    return console_of(request).access.requires_login and viewer_of(request).session is None


def _page(
    request: Request, target: str, *, name: str = "", error: LoginError | None = None
) -> Response:
    text = console_of(request).templates.render(
        "login.html",
        viewer=viewer_of(request),
        next=target,
        name=name,
        error=None if error is None else str(error),
    )
    headers = {"Retry-After": f"{error.retry_s:.0f}"} if error and error.retry_s else None
    return HTMLResponse(text, status_code=error.status if error else 200, headers=headers)


async def _note(request: Request, entry: AuditEntry) -> None:
    try:
        await console_of(request).runner.audit.write(entry)
    except AuditError as error:
        logger.error(  # noqa: TRY400 - the disk's failure, not a bug
            "a login is not in the audit log: %s", error, extra={"about": "logins"}
        )
