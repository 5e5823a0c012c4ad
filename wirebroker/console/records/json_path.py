r"""JSONPath for filters: a subset of RFC 9535, with an optional comparison.

    $.order.id                      the field exists
    $.order.id == 42                and has this value
    $.items[*].price > 9.5          for at least one item
    $..name contains "smith"        of a field at any depth
    $['a b'][0]                     names in brackets, indices, also negative ones
    $.items[?@.price > 10].name     items for which a comparison holds

Operators are ==, !=, <, <=, >, >= and contains; literals are JSON, also in single quotes. Order
needs two numbers or two strings. There are no functions, slices or regular expressions: a search
evaluates a path for each record of a topic, so its time is bounded by the size of the record, and
a value visits at most 10,000 nodes. Libraries for the whole RFC have no such bound.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_CHARACTERS: Final = 1000
_MOST_NODES: Final = 10_000
_MOST_NESTED_FILTERS: Final = 8
# Deeper documents are refused by the parser.
_NAME: Final = re.compile(r"[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff-]*")
_INDEX: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,8})")
_QUOTED: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_OPERATOR: Final = re.compile(r"\s*(==|!=|<=|>=|<|>|contains\b)\s*")
_SPACE: Final = re.compile(r"\s*")
_LITERAL: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true\b|false\b|null\b"""
)
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FieldStep(NamedTuple):
    """A field; with `is_deep`, of the value and everything inside it."""

    name: str
    is_deep: bool = False


class ElementStep(NamedTuple):
    """An element of an array."""

    number: int


class EveryStep(NamedTuple):
    """All elements or fields; with `is_deep`, of everything inside."""

    is_deep: bool = False


class FilterStep(NamedTuple):
    """The elements or fields for which a condition holds."""

    condition: JsonCondition


Step: TypeAlias = "FieldStep | ElementStep | EveryStep | FilterStep"


class JsonCondition(NamedTuple):
    """A path, and a comparison unless `compare` is empty."""

    steps: tuple[Step, ...]
    compare: str = ""
    literal: Any = None

    def holds(self, value: Any) -> bool:
        """Return whether a parsed document meets the condition."""
        budget = [_MOST_NODES]
        return self.holds_within(value, budget)

    def holds_within(self, value: Any, budget: list[int]) -> bool:
        """Return the same; `budget` has the number of nodes that may be visited."""
        return any(
            not self.compare or _compares(found, self.compare, self.literal)
            for found in _selected(value, self.steps, 0, budget)
        )

    def required_names(self) -> list[str]:
        """Return names without which no document meets the condition."""
        return [step.name for step in self.steps if isinstance(step, FieldStep)]


def _selected(value: Any, steps: tuple[Step, ...], index: int, budget: list[int]) -> Iterator[Any]:
    """Yield the values at a path, up to the budget."""
    while index < len(steps):
        budget[0] -= 1
        if budget[0] < 0:
            return
        step = steps[index]
        if isinstance(step, FieldStep) and not step.is_deep:
            if value.__class__ is not dict or step.name not in value:
                return
            value = value[step.name]
        elif isinstance(step, ElementStep):
            if value.__class__ is not list or not -len(value) <= step.number < len(value):
                return
            value = value[step.number]
        else:
            for child in _children(value, step, budget):
                yield from _selected(child, steps, index + 1, budget)
            return
        index += 1
    yield value


def _children(value: Any, step: Step, budget: list[int]) -> Iterator[Any]:
    if isinstance(step, FilterStep):
        for child in _elements(value):
            budget[0] -= 1
            if budget[0] < 0:
                return
            if step.condition.holds_within(child, budget):
                yield child
        return
    is_deep = isinstance(step, FieldStep | EveryStep) and step.is_deep
    pending = [value]
    while pending:
        budget[0] -= 1
        if budget[0] < 0:
            return
        current = pending.pop()
        if isinstance(step, EveryStep):
            yield from _elements(current)
        elif isinstance(step, FieldStep) and current.__class__ is dict and step.name in current:
            yield current[step.name]
        if is_deep:
            pending.extend(reversed(_elements(current)))


def _elements(value: Any) -> list[Any]:
    if value.__class__ is list:
        return list(value)
    return list(value.values()) if value.__class__ is dict else []


def _compares(found: Any, compare: str, literal: Any) -> bool:
    if compare == "contains":
        if isinstance(found, str):
            return isinstance(literal, str) and literal in found
        return any(_equal(element, literal) for element in _elements(found))
    if compare in {"==", "!="}:
        return _equal(found, literal) == (compare == "==")
    is_ordered = (isinstance(found, str) and isinstance(literal, str)) or (
        _is_number(found) and _is_number(literal)
    )
    return is_ordered and _ORDERS[compare](found, literal)


def _equal(found: Any, literal: Any) -> bool:
    # true is not 1.
    return isinstance(found, bool) == isinstance(literal, bool) and bool(found == literal)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- parsing ---


def parse_json_path(text: str) -> JsonCondition:
    """Parse a path with an optional comparison.

    Raises:
        ValueError: It cannot be parsed; the message says where.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"a JSONPath has at most {_MOST_CHARACTERS} characters")
    parser = _Parser(text.strip())
    condition = parser.condition("$")
    if parser.position < len(parser.text):
        raise parser.error("the end or a comparison such as == 42")
    return condition


class _Parser:
    """A position in a path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._open_filters = 0

    def error(self, expected: str) -> ValueError:
        found = self.text[self.position : self.position + 20] or "the end"
        return ValueError(
            f"the JSONPath cannot be used: at character {self.position + 1} it has {found!r}"
            f" instead of {expected}"
        )

    def condition(self, root: str) -> JsonCondition:
        if not self._skip(root):
            raise self.error(f"{root}, with which a path begins")
        steps: list[Step] = []
        while (step := self._step()) is not None:
            steps.append(step)
        match = _OPERATOR.match(self.text, self.position)
        if match is None:
            return JsonCondition(tuple(steps))
        self.position = match.end()
        return JsonCondition(tuple(steps), match[1], self._literal())

    def _step(self) -> Step | None:
        if self._skip(".."):
            if self._skip("*"):
                return EveryStep(is_deep=True)
            if self._skip("["):
                step = self._bracket()
                if isinstance(step, FieldStep | EveryStep):
                    return step._replace(is_deep=True)
                raise self.error("a name after ..")
            return FieldStep(self._name(), is_deep=True)
        if self._skip("."):
            return EveryStep() if self._skip("*") else FieldStep(self._name())
        return self._bracket() if self._skip("[") else None

    def _bracket(self) -> Step:
        step: Step
        self._space()
        if self._skip("*"):
            step = EveryStep()
        elif self._skip("?"):
            step = FilterStep(self._filter())
        elif match := _QUOTED.match(self.text, self.position):
            step = FieldStep(self._quoted(match))
        elif match := _INDEX.match(self.text, self.position):
            self.position = match.end()
            step = ElementStep(int(match[0]))
        else:
            raise self.error("an index, a quoted name, * or ?")
        self._space()
        if not self._skip("]"):
            raise self.error("]")
        return step

    def _filter(self) -> JsonCondition:
        if self._open_filters == _MOST_NESTED_FILTERS:
            raise ValueError(f"a JSONPath has at most {_MOST_NESTED_FILTERS} filters in each other")
        self._open_filters += 1
        self._space()
        is_in_parentheses = self._skip("(")
        self._space()
        condition = self.condition("@")
        self._space()
        if is_in_parentheses and not self._skip(")"):
            raise self.error(")")
        self._open_filters -= 1
        return condition

    def _literal(self) -> Any:
        match = _LITERAL.match(self.text, self.position)
        if match is None:
            raise self.error('a number, "text", true, false or null')
        quoted = _QUOTED.fullmatch(match[0])
        if quoted is not None:
            return self._quoted(_QUOTED.match(self.text, self.position) or quoted)
        try:
            literal = parse_json(match[0])
        except ValueError:
            raise self.error("a number") from None
        self.position = match.end()
        return literal

    def _quoted(self, match: re.Match[str]) -> str:
        if match[2] is not None:
            body = match[2]
        else:
            body = match[1].replace(r"\'", "'").replace('"', r"\"")
        try:
            text: str = parse_json(f'"{body}"')
        except ValueError:
            raise self.error("a quoted text with JSON's escapes") from None
        self.position = match.end()
        return text

    def _name(self) -> str:
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.error("a name (others in brackets: ['a b'])")
        self.position = match.end()
        return match[0]

    def _space(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def _skip(self, token: str) -> bool:
        is_there = self.text.startswith(token, self.position)
        if is_there:
            self.position += len(token)
        return is_there
