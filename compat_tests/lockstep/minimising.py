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
    if any(done.step.command[0] in _INTERRUPTIONS for done in outcome.done):
        yield "restarts are among the steps: all of them are needed"
        return
    deadline_s = time.monotonic() + _BUDGET_S
    shortest = outcome.done
    if not _differs(pair, shortest, outcome):
        yield "the same steps once more show no difference: it depends on time, or on other runs"
        return
    related = _related(shortest, outcome.prefix)
    if _differs(pair, related, outcome):
        shortest = related
    size = len(_moves(shortest)) // 2
    while size and time.monotonic() < deadline_s:
        for chosen in _chunks(shortest, size):
            fewer = [done for done in shortest if done.move not in chosen]
            if time.monotonic() < deadline_s and _differs(pair, fewer, outcome):
                shortest = fewer
        size //= 2
    yield f"{len(shortest)} of {len(outcome.done)} steps are enough:"
    for done in shortest:
        yield ""
        yield from transcript_lines(done.step)


def _related(steps: list[Done], prefix: str) -> list[Done]:
    """Return the moves that share a name with the last step, and the moves that these need."""
    word = re.compile(rf"\b(?:{re.escape(prefix)}[\w.-]+|[TPSM]\d+)\b")
    texts: dict[int, str] = {}
    for done in steps:
        text = " ".join([*done.step.command, done.step.arguments, *done.new_names])
        texts[done.move] = f"{texts.get(done.move, '')} {text}"
    last_names = set(word.findall(texts[steps[-1].move]))
    makers = set()
    for done in steps:
        if done.new_names & last_names:
            makers.add(done.move)
    related_moves = {
        move for move, text in texts.items() if last_names & set(word.findall(text))
    } | makers
    needed = {name for move in related_moves for name in _NAME.findall(texts[move])}
    related_moves |= {done.move for done in steps if done.new_names & needed}
    return [done for done in steps if done.move in related_moves or done.move == 0]


def _moves(steps: list[Done]) -> list[int]:
    return [move for move in dict.fromkeys(done.move for done in steps) if move != steps[-1].move]


def _chunks(steps: list[Done], size: int) -> Iterator[set[int]]:
    moves = _moves(steps)
    for start in range(0, len(moves), size):
        yield set(moves[start : start + size])


def _differs(pair: Pair, steps: list[Done], outcome: Outcome) -> bool:
    """Return whether these steps, under another prefix, end in a difference at the last."""
    prefix = pair.new_prefix()
    run_of_pair = Run(pair, timeout_s=_PATIENCE_S)
    try:
        for done in steps:
            if not set(_NAME.findall(done.step.arguments)) <= run_of_pair.known_names():
                continue
            run_of_pair.expect_names(
                sorted(done.new_names, key=lambda name: int(name[1:]) if name != "NOW" else 0)
            )
            answers = run_of_pair.ask(_renamed(done.step, outcome.prefix, prefix))
            if unexplained(outcome, done.step, answers):
                return done is steps[-1]
    finally:
        run_of_pair.close()
    return False


def _renamed(step: Step, old: str, new: str) -> Step:
    return replace(
        step,
        command=tuple(word.replace(old, new) for word in step.command),
        arguments=step.arguments.replace(old, new),
    )
