"""One HTTP request as a route sees it, and what it answers. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN: Final = "text/plain; charset=utf-8"
# A query has few fields; more is no question to us.
_MOST_FIELDS: Final = 100


class HttpError(Exception):
    """A request that is refused; its text is one sentence for whoever asked.

    Attributes:
        status: The answer's status, 400 to 599.
        headers: Of the answer, besides the usual ones.
    """

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}


class HttpRequest(NamedTuple):
    """One request, whole.

    Attributes:
        method: In capitals; HEAD is seen as GET.
        path: Decoded, without the query; begins with a slash.
        query: The first value of each field.
        headers: By names in small letters; of one that is repeated, the first.
        body: At most as long as the server takes.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body's value.

        Raises:
            HttpError: 400, it is no JSON.
        """
        try:
            return parse_json(self.body)
        except ValueError as error:
            raise HttpError(400, f"the body is no JSON: {error}") from None


class HttpAnswer(NamedTuple):
    """What a route answers.

    Attributes:
        body: Whole; a few MiB at most.
        status: 200 to 599.
        content_type: What the body is.
        headers: Further ones.
    """

    body: bytes
    status: int = 200
    content_type: str = PLAIN
    headers: Mapping[str, str] = {}

    @classmethod
    def of_text(cls, text: str, status: int = 200) -> HttpAnswer:
        """Return an answer of lines for people."""
        return cls(f"{text}\n".encode(), status)


def read_target(target: str) -> tuple[str, dict[str, str]]:
    """Return path and query of a request's target.

    Raises:
        HttpError: 400, it is no path.
    """
    if not target.startswith("/"):
        raise HttpError(400, "ask for a path")
    parts = urlsplit("//host" + target)
    try:
        fields = parse_qs(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise HttpError(400, f"the query cannot be read: {error}") from None
    return unquote(parts.path), {name: values[0] for name, values in fields.items()}
