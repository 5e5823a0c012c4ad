"""The nightly steps: separate, resumed, and reported in a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.nightly import __main__ as nightly
from tests.nightly.__main__ import gave_of
from tests.nightly.step import Step
from tests.nightly.steps import STEPS, due_steps

# Steps are modules, like the real ones; `timeit` runs a statement.
_GOES = "print('groups: seed 7, 31 schedules, at rest')"


def step(name: str, statement: str) -> Step:
    return Step(name, ("timeit", "-n", "1", "-r", "1", statement), 1, f"what {name} does")


@pytest.fixture
def run(tmp_path, capsys):

    def run_them(*arguments: str, steps: tuple[Step, ...]) -> tuple[int, str]:
        status = nightly.main([*arguments, "--results", str(tmp_path / "results")], steps)
        return status, capsys.readouterr().out

    return run_them


def test_table_shows_the_result_of_each_step(run):
    status, printed = run(steps=(step("first", _GOES), step("second", "raise SystemExit(3)")))
    assert status == 1
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    assert rows[2].startswith("| first | passed, 0 min ")
    assert rows[2].endswith("| groups: seed 7, 31 schedules, at rest |")
    assert rows[3].startswith("| second | FAILED, ")


def test_rerun_skips_steps_that_have_passed(run, tmp_path):
    note = tmp_path / "note"
    steps = (
        step("first", f"open({str(note)!r}, 'a').write('1')"),
        step(
            "second",
            f"open({str(note)!r}, 'a').write('2'); assert len(open({str(note)!r}).read()) > 2",
        ),
    )
    assert run(steps=steps)[0] == 1
    assert note.read_text() == "12"
    status, printed = run(steps=steps)
    assert status == 0
    assert "first: has passed on these sources" in printed
    assert note.read_text() == "122"


def test_named_step_runs_alone_even_if_it_passed(run, tmp_path):
    note = tmp_path / "note"
    steps = tuple(step(name, f"open({str(note)!r}, 'a').write({name!r})") for name in ("a", "b"))
    assert run("b", steps=steps)[0] == 0
    assert run("b", steps=steps)[0] == 0
    assert note.read_text() == "bb"


def test_step_result_is_its_test_summary_or_last_output_line():
    printed = ["", "  logs: seeds 1 to 9, 700 points: {}", "noise", "== 3 passed in 4.0s =="]
    assert gave_of(printed) == ["logs: seeds 1 to 9, 700 points: {}", "== 3 passed in 4.0s =="]
    assert gave_of(["one", "Traceback: torn", ""]) == ["Traceback: torn"]


def test_step_list_aligns_the_minutes(run):
    printed = run("--list", steps=STEPS)[1]
    assert len({line.index(" min  ") for line in printed.splitlines()}) == 1


def test_every_step_is_a_module_with_a_name_of_its_own():
    names = [step.name for step in STEPS]
    assert len(set(names)) == len(names)
    for step in STEPS:
        parts = step.command[0].split(".")
        if parts[0] == "pytest":
            folders = ("tests/", "compat_tests", "spark_it")
            paths = [argument for argument in step.command if argument.startswith(folders)]
            assert paths
            assert all((nightly.ROOT / path).exists() for path in paths)


def test_no_night_takes_over_five_hours_and_every_step_has_its_night():
    first_day = 740_000
    nights = [due_steps(day) for day in range(first_day, first_day + 21)]
    assert max(sum(step.minutes for step in night) for night in nights) <= 300
    for step in STEPS:
        days = [number for number, night in enumerate(nights) if step in night]
        gaps = {later - earlier for earlier, later in pairwise(days)}
        assert gaps == {step.nights}


def test_all_runs_the_steps_of_other_nights_too(run):
    steps = (replace(step("seldom", _GOES), nights=10**9), step("often", _GOES))
    assert "seldom" not in run(steps=steps)[1]
    assert "| seldom | passed" in run("--all", steps=steps)[1]
