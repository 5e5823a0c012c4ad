"""Find unusual wording in documentation, docstrings, comments and messages.

It reads Markdown, Python, and the comments of scripts, Makefiles and configuration files.

    python -m tests.support.harness.prose [FILE...]      by default all files of the project

Each pattern has a plain alternative. Code in Markdown (fenced or in backticks), link targets and
generated files are skipped.
"""

from __future__ import annotations

import argparse
import ast
import gc
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.support.harness.project_files import ROOT, project_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_START: Final = r"(?:^|[.:;] )"
# `a key of its own`, but not `the cost of our own code`.
_OF_OWN: Final = (
    r"\bof (one's|its|their|our) own\b"
    r"(?!\s(?!(?:and|as|at|by|for|from|in|is|on|or|so|that|to|which|with)\b)\w)"
)
# Pattern -> what to write.
ADVICE: Final[dict[str, str]] = {
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b(?!:)": "fix, repair",
    r"\b(whom|whoever|whomever)\b": "name the actor",
    r"\b(he|him|his|himself)\b": "it; or name the person's role",
    r"\b(is|are|was|were|be|been) told\b(?! apart)|\btold of\b": "receives, is notified of",
    r"(?<!users )(?<!alice, )\bwho (asks|waits|may|wants|needs|resigns)\b": "name the actor",
    _START + r"What (is|was|has|are|were) (?![^.]*\?)": "begin with the subject",
    _OF_OWN: "its own …, a separate …",
    r"\bof (Kafka|Spark|Apache|Java|librdkafka)'s\b(?!\s\w)": "Kafka's …",
    r"\bof (ours|theirs)\b": "our …, the other's …",
    r"\bmidst\b": "middle, during",
    r"\bfor ever\b": "forever",
    r"\bany more\b(?! than| \w+s\b)|(?<!there )\b(is|are|was|were) no more\b(?! \w)": "no longer",
    r"\b(stands?|stood) (there|in|for)\b": "is in, means",
    _START + r"Have (those|them|it) \w+": "imperative: Delete the …",
    r"(?<!salts\sfor\s)\b(nobody|somebody)\b": "no client, a client, none",
    r"\bgo(es)? by\b": "use, pass",
    r"\bwhat is (committed|published|due|left|missing|needed|stored)\b": "the … records, the rest",
    r"\b(and|to) have (it|them) \w+ed\b": "and … it",
    r"\b(is|are|was|were) given up\b": "… gives up; abandoned",
    r"\bthat which\b": "the one that",
    r"\bfrom where (not|it|on|they)\b": "the place from which",
    r"(?<!there )\b(is|are) (?-i:none)\b": "is not a …",
}
_PATTERN: Final = re.compile(
    "|".join(f"(?P<p{number}>{pattern})" for number, pattern in enumerate(ADVICE)),
    re.MULTILINE | re.IGNORECASE,
)
# Generated, or samples.
_SKIPPED: Final = ("codecs/generated/", "codecs/schemas/", "tests/unit/support/test_prose.py")
_SUFFIXES: Final = frozenset({".md", ".py", ".sh", ".toml", ".yml", ".yaml", ".properties"})
_FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`]*`")
_HASH_COMMENT: Final = re.compile(r"(^|\s)#(?!!).*")
_LINK_TARGET: Final = re.compile(r"\]\([^)\s]*\)")


class Hit(NamedTuple):
    """A place with such wording."""

    file: str
    line: int
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}: {self.advice}"


def hits_in(text: str, file: str = "", line: int = 1) -> Iterator[Hit]:
    """Yield the hits in a text that begins at a line of a file."""
    for match in _PATTERN.finditer(text):
        number = int((match.lastgroup or "p0")[1:])
        advice = list(ADVICE.values())[number]
        yield Hit(file, line + text[: match.start()].count("\n"), match[0].strip(), advice)


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file, each with its first line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        plain = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), source)
        plain = _CODE.sub(lambda match: "`" + "\n" * match[0].count("\n") + "`", plain)
        yield 1, _LINK_TARGET.sub("]()", plain)
        return
    if path.suffix != ".py":
        for number, line in enumerate(source.splitlines(), 1):
            if comment := _HASH_COMMENT.search(line):
                yield number, _CODE.sub("``", comment[0])
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, _CODE.sub("``", node.value)
    yield from _comments_of(source)


def _comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield a module's comments, or nothing if none can match: tokenizing all modules is slow."""
    after_signs = (line.partition("#")[2] for line in source.splitlines())
    if not any(_PATTERN.search(text) for text in after_signs if text):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _CODE.sub("``", token.string)


def has_prose(path: Path) -> bool:
    """Return whether a file is Markdown, Python, or has comments that begin with #."""
    if path.suffix in _SUFFIXES or path.name in {"Makefile", "Containerfile"}:
        return True
    if path.suffix or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def check(paths: Iterable[Path]) -> list[Hit]:
    """Return all hits, except in generated files."""
    hits: list[Hit] = []
    for path in paths:
        name = path.resolve().relative_to(ROOT).as_posix()
        if has_prose(path) and not name.startswith(_SKIPPED):
            hits += (hit for line, text in texts_of(path) for hit in hits_in(text, name, line))
    return hits


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("file", nargs="*", type=Path, help="files to check (all of the project)")
    paths = parser.parse_args().file or project_files()
    gc.disable()  # collections would visit all syntax trees, in two thirds of the time
    hits = check(paths)
    for hit in hits:
        sys.stdout.write(f"{hit}\n")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
