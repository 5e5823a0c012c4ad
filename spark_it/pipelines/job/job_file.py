"""A job's file in TOML, checked against the settings that the job's class declares.

Paths are relative to the file's folder. The code that uses a table checks its content.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.pipelines.job.errors import JobFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Job = TypeVar("Job")

# kind -> (its TOML types, its description in messages)
_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "text": ((str,), "a text"),
    "path": ((str,), "a path"),
    "paths": ((str,), "paths, separated by commas"),
    "texts": ((list,), "a list of texts"),
    "count": ((int,), "a whole number of at least 1"),
    "seconds": ((int, float), "a number of seconds above 0"),
    "flag": ((bool,), "true or false"),
    "table": ((dict,), "a table"),
}


def setting(
    kind: str, description: str, default: Any = dataclasses.MISSING, choices: tuple[str, ...] = ()
) -> Any:
    """Return a field of a job, which is required unless it has a default.

    `kind` is a key of _KINDS; `choices` are the allowed texts, empty for any.
    """
    assert kind in _KINDS, kind
    metadata = {"kind": kind, "what": description, "choices": choices}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


# Arguments of `setting`, for jobs that read topics.
RECREATED_TOPIC: Final = (
    "text",
    "if a topic was deleted and created again: stop, or read the new one from its beginning",
    "stop",
    ("stop", "restart"),
)


def load_job(path: Path, kind: type[Job]) -> Job:
    """Read a job's file; raise JobFileError if it is missing or invalid."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise JobFileError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise JobFileError(f"{path} is not valid TOML: {error}") from error
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise JobFileError(f"{path}: there is no setting {name}{like(name, fields)}")
    for name, field in fields.items():
        is_optional = field.default is not dataclasses.MISSING
        if not is_optional and field.default_factory is dataclasses.MISSING and name not in values:
            raise JobFileError(f"{path}: {name} is missing: {field.metadata['what']}")
    return kind(**{name: _checked(path, fields[name], value) for name, value in values.items()})


def described(kind: type) -> Iterator[str]:
    """Return a `--help` line for each setting."""
    for field in dataclasses.fields(kind):
        choices = " or ".join(field.metadata["choices"]) or _KINDS[field.metadata["kind"]][1]
        default = "" if field.default in (dataclasses.MISSING, None, "") else f" [{field.default}]"
        yield f"  {field.name:<20} {field.metadata['what']}; {choices}{default}"


def like(name: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean …?` with a similar known name, or ""."""
    matches = get_close_matches(name, list(candidates), n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


def _checked(path: Path, field: dataclasses.Field[Any], value: Any) -> Any:
    kind, choices = field.metadata["kind"], field.metadata["choices"]
    types, expected = _KINDS[kind]
    is_right = isinstance(value, types) and (kind == "flag" or not isinstance(value, bool))
    if is_right and kind in ("count", "seconds"):
        is_right = value >= 1 if kind == "count" else 0 < value < math.inf
    if is_right and kind == "texts":
        is_right = all(isinstance(text, str) for text in value)
    if value == "":
        if field.default == "":
            return value
        raise JobFileError(f"{path}: {field.name} is empty: {field.metadata['what']}")
    if not is_right:
        raise JobFileError(f"{path}: {field.name} = {value!r} is not {expected}")
    if choices and value not in choices:
        hint = like(value, choices)
        raise JobFileError(f"{path}: {field.name} = {value!r} is not one of {choices}{hint}")
    folder = path.parent.resolve()
    if kind == "paths":
        return ",".join(str(folder / part.strip()) for part in value.split(",") if part.strip())
    # Spark handles addresses with other schemes, such as s3a://bucket.
    if kind == "path" and "://" not in (path_text := value.removeprefix("file://")):
        return str(folder / path_text)
    return value


def kafka_settings(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """Return client settings as texts.

    Raises:
        JobFileError: bootstrap.servers is missing, or a setting is reserved for the job.
    """
    if "bootstrap.servers" not in table:
        matches = get_close_matches("bootstrap.servers", list(table), n=1)
        hint = f'; is "{matches[0]}" a typo?' if matches else ""
        raise JobFileError(f'{path}: [kafka] has no "bootstrap.servers"{hint}')
    for name in ("transactional.id", "group.id", "enable.idempotence"):
        if name in table:
            raise JobFileError(f"{path}: [kafka] {name} is set by the job")
    return {name: _as_text(value) for name, value in table.items()}


def kafka_settings_if_any(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """Return `kafka_settings` of a table, unless it is empty."""
    return kafka_settings(path, table) if table else {}


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
