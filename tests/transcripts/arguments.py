"""The arguments of a step: Python assignments that may contain only values.

Allowed are literals, `+`, `-` and `*`, the helpers of batches.py, and the transcript's names so far
(T1 for a topic id, P1 for a producer id, S1 for a fetch session, M1 for a member id, DIRECTORY for
the log directory, NOW).
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from tests.transcripts.script import ScriptError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def evaluate(
    text: str, names: Mapping[str, Any], helpers: Mapping[str, Callable[..., Any]]
) -> dict[str, Any]:
    """Return the value of each assigned name.

    Raises:
        ScriptError: The text has anything but assignments of values.
    """
    evaluator = _Evaluator(names, helpers)
    values: dict[str, Any] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ScriptError(f"{text!r}: {error}") from error
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            raise ScriptError(f"{ast.unparse(statement)!r} assigns nothing")
        (target,) = statement.targets
        values[ast.unparse(target)] = evaluator.value(statement.value)
    return values


class _Evaluator:
    def __init__(self, names: Mapping[str, Any], helpers: Mapping[str, Callable[..., Any]]) -> None:
        self._names = names
        self._helpers = helpers

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one return per kind of value
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple():
                return [self.value(element) for element in node.elts]
            case ast.Dict():
                return self._dict(node)
            case ast.UnaryOp(op=ast.USub()):
                return -self.value(node.operand)
            case ast.BinOp() if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](self.value(node.left), self.value(node.right))
            case ast.Name():
                return self._name(node.id)
            case ast.Call(func=ast.Name()):
                return self._call(node)
        raise ScriptError(f"{ast.unparse(node)!r} is not a value")

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        pairs = zip(node.keys, node.values, strict=True)
        return {self.value(key): self.value(value) for key, value in pairs if key is not None}

    def _name(self, name: str) -> Any:
        if name not in self._names:
            raise ScriptError(f"{name} has not been met; known: {sorted(self._names)}")
        return self._names[name]

    def _call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        helper = self._helpers.get(node.func.id)
        if helper is None:
            raise ScriptError(f"{node.func.id} is no helper; there are: {sorted(self._helpers)}")
        positional = [self.value(argument) for argument in node.args]
        named = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        return helper(*positional, **named)
