"""Reduce a run to fewer steps that end in the same difference.

It leaves out halves, quarters, eighths, … of the run's moves, each time with a new prefix on the
running brokers, as long as the rest ends in the difference. Steps that name an unknown id are
skipped, and names do not change (`StableNames`).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from compat_tests.lockstep.pair import Run
from compat_tests.lockstep.running import transcript_lines, unexplained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.lockstep.pair import Pair
    from compat_tests.lockstep.running import Done, Outcome
    from tests.transcripts.script import Step

_BUDGET_S = 40.0
# Steps that wait for a removed step time out; others are answered within milliseconds.
_PATIENCE_S = 2.0
_NAME = re.compile(r"\b[TPSM]\d+\b")
_INTERRUPTIONS = frozenset({"restart", "kill"})


def minimise(pair: Pair, outcome: Outcome) -> Iterator[str]:
    """Yield the shortest steps found in time, as a transcript."""
    if any(each.step.command[0] in _INTERRUPTIONS for each in outcome.done):
        yield "restarts are among the steps: all of them are needed"
        return
    deadline_s = time.monotonic() + _BUDGET_S
    kept = outcome.done
    if not _differs(pair, kept, outcome):
        yield "the same steps once more show no difference: it depends on time, or on other runs"
        return
    related = _related(kept, outcome.prefix)
    if _differs(pair, related, outcome):
        kept = related
    size = len(_moves(kept)) // 2
    while size and time.monotonic() < deadline_s:
        for chosen in _chunks(kept, size):
            fewer = [each for each in kept if each.move not in chosen]
            if time.monotonic() < deadline_s and _differs(pair, fewer, outcome):
                kept = fewer
        size //= 2
    yield f"{len(kept)} of {len(outcome.done)} steps are enough:"
    for each in kept:
        yield ""
        yield from transcript_lines(each.step)


def _related(steps: list[Done], prefix: str) -> list[Done]:
    """Return the moves that share a name with the last step, and the moves that these need."""
    word = re.compile(rf"\b(?:{re.escape(prefix)}[\w.-]+|[TPSM]\d+)\b")
    texts: dict[int, str] = {}
    for each in steps:
        text = " ".join([*each.step.command, each.step.arguments, *each.new_names])
        texts[each.move] = f"{texts.get(each.move, '')} {text}"
    wanted = set(word.findall(texts[steps[-1].move]))
    makers = set()
    for each in steps:
        if each.new_names & wanted:
            makers.add(each.move)
    kept = {move for move, text in texts.items() if wanted & set(word.findall(text))} | makers
    needed = {name for move in kept for name in _NAME.findall(texts[move])}
    kept |= {each.move for each in steps if each.new_names & needed}
    return [each for each in steps if each.move in kept or each.move == 0]


def _moves(steps: list[Done]) -> list[int]:
    return [move for move in dict.fromkeys(each.move for each in steps) if move != steps[-1].move]


def _chunks(steps: list[Done], size: int) -> Iterator[set[int]]:
    moves = _moves(steps)
    for start in range(0, len(moves), size):
        yield set(moves[start : start + size])


def _differs(pair: Pair, steps: list[Done], outcome: Outcome) -> bool:
    """Return whether these steps, under another prefix, end in a difference at the last."""
    prefix = pair.new_prefix()
    both = Run(pair, timeout_s=_PATIENCE_S)
    try:
        for each in steps:
            if not set(_NAME.findall(each.step.arguments)) <= both.known_names():
                continue
            both.expect_names(
                sorted(each.new_names, key=lambda name: int(name[1:]) if name != "NOW" else 0)
            )
            answers = both.ask(_renamed(each.step, outcome.prefix, prefix))
            if unexplained(outcome, each.step, answers):
                return each is steps[-1]
    finally:
        both.close()
    return False


def _renamed(step: Step, old: str, new: str) -> Step:
    return replace(
        step,
        command=tuple(word.replace(old, new) for word in step.command),
        arguments=step.arguments.replace(old, new),
    )
