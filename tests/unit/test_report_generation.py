"""Metrics of operators from a specification: over all tasks, from the first candidates alone."""

from dataclasses import replace

import pytest
from synthetic_runs import invented_run

from ascend_gym.report.comparison import NONE
from ascend_gym.report.generation import PAPER, category_table, first_candidate, meters_table, metrics_of
from ascend_gym.report.page.document import results_page
from ascend_gym.report.page.results import read_results
from ascend_gym.sweep.store import ResultsStore


def _run(name, *answers, category="reduce", variant="ascend-craft", seed=0):
    """Return a run whose candidates ended as ``answers``: a status, or a latency beside the calls' 100 us."""
    stored = invented_run(f"generate/{name}", 1, variant, seed, len(answers))
    steps = [stored.evaluations[0]]
    for step, answer in zip(stored.evaluations[1:], answers, strict=True):
        latency_us = answer if isinstance(answer, float) else None
        status = "ok" if latency_us else answer
        origin = '{"passes": [{"builds": 2}]}'
        steps.append(replace(step, status=status, latency_us=latency_us, usable=1, origin=origin))
    operator = replace(stored.operator, category=category)
    return replace(stored, evaluations=tuple(steps), operator=operator)


def _first(stored):
    return first_candidate(stored.run, stored.operator.category, stored.evaluations)


def test_the_first_candidate_counts_and_the_meters_of_the_whole_run():
    first = _first(_run("a", 500.0, 50.0, "incorrect"))
    assert first.hits == (True, True, True, False, False)
    assert (first.builds, first.evaluations, first.tokens) == (6, 3, 4 * 150)
    assert _first(_run("b", "incorrect", 10.0)).hits == (True, False, False, False, False)
    assert _first(_run("c", "build_error", 10.0)).hits == (False,) * 5


def test_an_answer_that_is_no_candidate_does_not_build():
    stored = _run("a", "build_error")
    unusable = [replace(each, usable=0, status="incorrect") for each in stored.evaluations[1:]]
    first = first_candidate(stored.run, "reduce", (stored.evaluations[0], *unusable))
    assert not first.built


def test_all_tasks_are_in_the_denominators_and_a_task_counts_once():
    tasks = [_run("a", 100.0), _run("a", "incorrect", seed=1), _run("b", 120.0), _run("b", 120.0, seed=1)]
    values = [each.value for each in metrics_of([_first(each) for each in tasks])]
    assert values == pytest.approx([1.0, 0.75, 0.75, 0.75, 0.25])
    whole = metrics_of([_first(each) for each in tasks])[1]
    assert whole.low < whole.value < whole.high


def test_categories_stand_beside_the_paper():
    candidates = [_first(_run("a", 100.0)), _first(_run("b", 400.0, category="pooling"))]
    table = category_table("rules", candidates)
    cells = {row[0]: row for row in table.rows}
    assert cells["reduce (1)"][-1] == " / ".join(f"{each:g}" for each in PAPER["reduce"])
    assert cells["all (2)"][5].startswith("50.0 [")
    assert meters_table({"rules": candidates}).rows[0][-3:] == ("2.0", "1.0", "300.0")


def test_the_row_beside_the_papers_all_has_the_tasks_of_its_categories_alone():
    candidates = [_first(_run("a", 400.0)), _first(_run("b", 100.0, category="mhc"))]
    cells = {row[0]: row for row in category_table("rules", candidates).rows}
    assert list(cells) == ["mhc (1)", "reduce (1)", "all (1)", "all of ours (2)"]
    assert cells["all (1)"][5].startswith("0.0 [")
    assert cells["all (1)"][-1] == " / ".join(f"{each:g}" for each in PAPER["all"])
    assert cells["all of ours (2)"][5].startswith("50.0 [")
    assert cells["all of ours (2)"][-1] == NONE


def test_runs_that_do_not_count_are_told_and_cost_nothing():
    dear = _run("a", *["incorrect"] * 9, seed=1)
    own = [_first(each) for each in (_run("a", 100.0), dear, _run("b", 100.0))]
    table = meters_table({"rules": own})
    assert table.title.endswith("not all tasks have: 1")
    assert table.rows[0][1] == "2"
    assert table.rows[0][-3:] == ("2.0", "1.0", "300.0")
    assert meters_table({"rules": own}, runs=5).title.endswith(": 3")
    assert "left out" not in meters_table({"rules": [own[0], own[2]]}).title


def test_the_page_has_a_section_where_there_are_such_runs(tmp_path):
    for suite, shown in (("generate", True), ("core", False)):
        with ResultsStore(tmp_path / f"{suite}.sqlite", write=True) as store:
            for seed in range(2):
                stored = _run("a", 100.0, seed=seed)
                run = replace(stored.run, op_id=f"{suite}/a")
                operator = replace(stored.operator, op_id=f"{suite}/a")
                store.put(replace(stored, run=run, operator=operator))
            page = results_page(read_results(store, store.runs()), "title")
        assert ("generation" in page.tables) == shown
        assert ("Operators from a specification" in page.html()) == shown
