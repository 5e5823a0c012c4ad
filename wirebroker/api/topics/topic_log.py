"""One log line for each request that created or deleted topics: which, and who asked.

A request that did nothing leaves no line: clients that try again would fill the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.forwarding import field_of
from wirebroker.base.wording import few_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.request.session import Session

logger = logging.getLogger(__name__)

_MOST_NAMES: Final = 10


def log_topics(what: str, results: Iterable[Any], connection: Session) -> None:
    """Say which topics a request has changed.

    Args:
        what: "created" or "deleted".
        results: The request's answers, with `name` and, where it failed, `error_code`.
        connection: Where the request came from.
    """
    names = [str(field_of(each, "name")) for each in results if not field_of(each, "error_code")]
    if names:
        noun = "topic" if len(names) == 1 else f"{len(names)} topics:"
        shown = few_of(names, _MOST_NAMES)
        logger.info("%s %s %s, as %s asked", what, noun, shown, connection.peer)
