"""What OpenEvolve's prompts tell of earlier programs."""

import pytest

from baselines.openevolve import Evolution
from baselines.openevolve_history import History, distinct, without_empty_sections


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


def test_of_a_measured_program_latencies_are_told_and_not_its_whole_profile_again():
    history = History()
    history.begin("a\n")
    profile = (
        "- case: 9.00 us (no candidate can take less than 3.00 us: 33% reached); block dim 8\n  busy: vec"
    )
    history.note("b\n", {}, f"status: ok\nlatency: 9.00 us, the geometric mean\n{profile}")
    told = history.last()[0]["metadata"]["changes"]
    assert told.endswith("mean\n- case: 9.00 us (no candidate can take less than 3.00 us: 33% reached)")


def test_answers_without_a_program_are_told_too_and_the_last_three_are_kept():
    history = History()
    for number in range(4):
        history.begin(str(number))
        history.note(None, {}, f"No valid diffs {number}")
    assert [each["metadata"]["changes"] for each in history.last()] == [
        f"\nchanges to a program of fitness 0.0000:\nno program\nNo valid diffs {number}"
        for number in (1, 2, 3)
    ]


def test_what_an_attempt_began_with_and_which_edits_were_left_out_is_told():
    history = History()
    history.note("a\n", {"combined_score": 1.25}, "ok")
    history.begin("a\n")
    assert history.current == "a\n"
    history.answered(["- left out: the edit at 'b'"])
    history.note("c\n", {"combined_score": 1.5}, "status: ok")
    told = history.last()[0]["metadata"]["changes"]
    assert told.startswith("\nchanges to a program of fitness 1.2500:\n")
    assert "\n- left out: the edit at 'b'\nstatus: ok" in told


def test_headings_without_anything_below_are_left_out():
    empty = "# History\n\n## Previous Attempts\n\n\n\n## Top Performing Programs\n\n\n\n# Sources\n"
    assert without_empty_sections(empty) == "# History\n\nNothing was attempted yet.\n\n# Sources\n"
    full = "# History\n\n## Previous Attempts\n\n### Attempt 1\n\n## Top Performing Programs\n\n# Sources\n"
    assert without_empty_sections(full) == "# History\n\n## Previous Attempts\n\n### Attempt 1\n\n# Sources\n"


def test_no_program_is_shown_twice():
    programs = [{"code": code, "id": number} for number, code in enumerate("abac")]
    seen = {"b"}
    assert [each["id"] for each in distinct(programs, seen)] == [0, 3]
    assert distinct(programs, seen) == []


@pytest.mark.parametrize(("budget", "islands"), [(1, 1), (9, 1), (20, 2), (49, 4), (230, 5)])
def test_islands_scale_with_the_budget(budget, islands):
    assert Evolution.within(budget).num_islands == islands
