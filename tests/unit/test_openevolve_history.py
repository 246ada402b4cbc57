"""What OpenEvolve's prompts tell of earlier programs."""

import pytest

from baselines.openevolve import Evolution
from baselines.openevolve_history import History, distinct


def test_attempts_are_told_with_changes_and_what_came_of_them():
    history = History()
    history.note("initial", {"combined_score": 1.0}, "ok")
    assert history.last() == []
    history.begin("a\nb\n")
    history.note("a\nc\n", {"combined_score": 0.0}, "status: build_error\n- no such thing")
    (attempt,) = history.last()
    assert attempt["metrics"] == {"combined_score": 0.0}
    told = attempt["metadata"]["changes"]
    assert "-b\n+c" in told
    assert told.endswith("status: build_error\n- no such thing")


def test_answers_without_a_program_are_told_too_and_the_last_three_are_kept():
    history = History()
    for number in range(4):
        history.begin(str(number))
        history.note(None, {}, f"No valid diffs {number}")
    assert [each["metadata"]["changes"] for each in history.last()] == [
        f"\nno program\nNo valid diffs {number}" for number in (1, 2, 3)
    ]


def test_no_program_is_shown_twice():
    programs = [{"code": code, "id": number} for number, code in enumerate("abac")]
    seen = {"b"}
    assert [each["id"] for each in distinct(programs, seen)] == [0, 3]
    assert distinct(programs, seen) == []


@pytest.mark.parametrize(("budget", "islands"), [(1, 1), (9, 1), (20, 2), (49, 4), (230, 5)])
def test_islands_scale_with_the_budget(budget, islands):
    assert Evolution.within(budget).num_islands == islands
