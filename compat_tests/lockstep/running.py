"""One run: steps of one kind from one seed, up to the first difference."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from compat_tests.lockstep.agreed import AGREED, Agreed, row_for
from compat_tests.lockstep.pair import Answers, Run
from compat_tests.lockstep.steps import Answer
from tests.transcripts.comparing import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.lockstep.kind import Kind, Moves
    from compat_tests.lockstep.pair import Pair
    from tests.transcripts.script import Step


class Done(NamedTuple):
    step: Step
    answers: Answers
    move: int  # number of the step's move
    new_names: frozenset[str]  # ids that its response introduced


@dataclass(slots=True)
class Outcome:
    kind: str
    seed: int
    prefix: str
    done: list[Done] = field(default_factory=list)
    # The sentences about the last step, if it differs.
    difference: list[str] = field(default_factory=list)
    agreed: Counter[Agreed] = field(default_factory=Counter)

    @property
    def is_good(self) -> bool:
        """Return whether all responses were equal, apart from agreed differences."""
        return not self.difference

    @property
    def sent(self) -> Counter[str]:
        """Return the number of uses of each command and each API."""
        commands = (done.step.command for done in self.done)
        return Counter(word[1] if word[0] in ("send", "begin") else word[0] for word in commands)

    @property
    def refused(self) -> int:
        """Return the number of error responses and missing responses."""
        return sum(not Answer(done.answers.apache).is_good for done in self.done)

    def report(self) -> Iterator[str]:
        """Describe the first difference and how to reproduce it."""
        last = self.done[-1]
        number = len(self.done)
        yield f"{self.kind}, seed {self.seed}: step {number} is answered differently"
        yield from transcript_lines(last.step)
        yield from (f"  {sentence}" for sentence in self.difference)
        yield "Apache Kafka:"
        yield from (f"  {line}" for line in last.answers.apache)
        yield "wirebroker:"
        yield from (f"  {line}" for line in last.answers.wirebroker)
        yield "again, to this step:"
        arguments = f"--kind {self.kind} --seeds {self.seed} --steps {number}"
        yield f"  python -m compat_tests.lockstep {arguments}"


def run(
    pair: Pair,
    kind_type: type[Kind],
    *,
    seed: int,
    steps: int,
    table: tuple[Agreed, ...] = AGREED,
) -> Outcome:
    """Send the steps, up to the end of the last move; then compare everything.

    Args:
        pair: The running brokers.
        kind_type: The kind of steps.
        seed: Seed of all choices.
        steps: Number of steps before the final comparison.
        table: The agreed differences.
    """
    prefix = pair.new_prefix()
    outcome = Outcome(kind_type.name, seed, prefix)
    kind = kind_type(random.Random(f"{kind_type.name} {seed}"), pair.versions, prefix)
    run_of_pair = Run(pair)
    try:
        move = 0
        may_continue = _perform(run_of_pair, kind.beginning(), outcome, move, table)
        while may_continue and len(outcome.done) < steps:
            move += 1
            may_continue = _perform(run_of_pair, kind.move(), outcome, move, table)
        if may_continue:
            _perform(run_of_pair, kind.ending(), outcome, move + 1, table)
    finally:
        run_of_pair.close()
    return outcome


def _perform(
    run_of_pair: Run, moves: Moves, outcome: Outcome, move: int, table: tuple[Agreed, ...]
) -> bool:
    """Send the steps of one move; return whether the responses were equal."""
    step = next(moves, None)
    while step is not None:
        numbered = replace(step, line_number=len(outcome.done) + 1)
        before = run_of_pair.known_names()
        answers = run_of_pair.ask(numbered)
        new_names = frozenset(run_of_pair.known_names() - before)
        outcome.done.append(Done(numbered, answers, move, new_names))
        outcome.difference = unexplained(outcome, numbered, answers, table)
        if outcome.difference:
            return False
        if answers.apache[:1] and answers.apache[0].startswith("fails: "):
            raise AssertionError("\n".join(["the kind of steps is wrong:", *_last_steps(outcome)]))
        try:
            step = moves.send(Answer(answers.apache))
        except StopIteration:
            step = None
    return True


def _last_steps(outcome: Outcome) -> Iterator[str]:
    for done in outcome.done[-12:]:
        yield f"# {done.step.line_number}, of seed {outcome.seed}"
        yield from transcript_lines(done.step)
        yield "----"
        yield from done.answers.apache


def unexplained(
    outcome: Outcome, step: Step, answers: Answers, table: tuple[Agreed, ...] = AGREED
) -> list[str]:
    """Return the sentences that no row of the table explains; count the used rows."""
    if answers.apache == answers.wirebroker:
        return []
    unexplained_sentences: list[str] = []
    for sentence in sentences(answers.apache, answers.wirebroker):
        row = row_for(outcome.kind, " ".join(step.command), sentence, table)
        if row is None:
            unexplained_sentences.append(sentence)
        else:
            outcome.agreed[row] += 1
    return unexplained_sentences


def transcript_lines(step: Step) -> list[str]:
    """Return a step as written in a transcript, without its response."""
    return [" ".join(step.command), *step.argument_lines]
