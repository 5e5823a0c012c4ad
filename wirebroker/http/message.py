"""HTTP requests and responses as routes see them. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAIN: Final = "text/plain; charset=utf-8"
_MOST_FIELDS: Final = 100


class HttpError(Exception):
    """A refused request; the text is one sentence for the client."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}


class HttpRequest(NamedTuple):
    """One complete request.

    Attributes:
        method: In capitals; HEAD becomes GET.
        path: Decoded, without the query.
        fields: The values of each field of the query.
        headers: The first value of each lower-case name.
    """

    method: str
    path: str
    fields: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> dict[str, str]:
        """The first value of each field of the query."""
        return {name: values[0] for name, values in self.fields.items()}

    def json(self) -> Any:
        """Parse the body.

        Raises:
            HttpError: 400 if it is not JSON.
        """
        try:
            return parse_json(self.body)
        except ValueError as error:
            raise HttpError(400, f"the body is not JSON: {error}") from None


class HttpAnswer(NamedTuple):
    """The response of a route; the body has a few MiB at most."""

    body: bytes
    status: int = 200
    content_type: str = PLAIN
    headers: Mapping[str, str] = {}

    @classmethod
    def of_text(cls, text: str, status: int = 200) -> HttpAnswer:
        """Return a plain-text response."""
        return cls(f"{text}\n".encode(), status)


def read_target(target: str) -> tuple[str, dict[str, list[str]]]:
    """Return path and query of a request's target; a field may have several values.

    Raises:
        HttpError: 400 if it is invalid.
    """
    if not target.startswith("/"):
        raise HttpError(400, "the target is not a path")
    parts = urlsplit("//host" + target)
    try:
        fields = parse_qs(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise HttpError(400, f"the query cannot be read: {error}") from None
    return unquote(parts.path), fields
