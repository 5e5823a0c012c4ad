"""Log lines for created and deleted topics, one per request, with the client.

A request that changed nothing is not logged: clients that retry would fill the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import few_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.request.session import Session

logger = logging.getLogger(__name__)

_MOST_NAMES: Final = 10


def log_topics(action: str, results: Iterable[Any], connection: Session) -> None:
    """Log the topics that a request has created or deleted."""
    names = [str(result["name"]) for result in results if not result.get("error_code")]
    if names:
        noun = "topic" if len(names) == 1 else f"{len(names)} topics:"
        listed_names = few_of(names, _MOST_NAMES)
        logger.info("%s %s %s, requested by %s", action, noun, listed_names, connection.peer)
