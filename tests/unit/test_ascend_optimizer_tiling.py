"""Stage I of AscendOptimizer: parents, survivors, islands, markers, and what an answer may change."""

import re

import pytest
from conftest import ok_result
from numbered_search import TILING, NumberedModel, SavingEvaluator, search

from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.rewrites.fenced import render_file
from ascend_gym.search.outcome import UnusableProposal


def test_invalid_offspring_are_discarded_at_once_and_told_of(tmp_path):
    comments = {1: " // status: incorrect", 2: " // saves: 7"}
    model = NumberedModel(comments)
    outcome = search(tmp_path, model, budget=3, ablate=("kernel",))
    mutations = [prompt for prompt in model.prompts if prompt.startswith("# Task: mutate")]
    parents = [re.search(r"^ *int tiling = (\d+);", prompt, re.MULTILINE)[1] for prompt in mutations]
    assert parents == ["0", "0", "2"]
    assert "### Attempt 1, failed: incorrect (tiling)\n- [run_kernel]" in mutations[1]
    assert re.search(r"^\+ *int tiling = 1; // status: incorrect$", mutations[1], re.MULTILINE)
    assert outcome.best_latency_us == pytest.approx(93)


def test_survivors_beside_the_parent_are_shown(tmp_path):
    model = NumberedModel({1: " // saves: 7", 2: " // saves: 5"})
    search(tmp_path, model, budget=3, ablate=("kernel",), population=2)
    last = model.prompts[-1]
    survivors = last.split("## Other survivors")[1].split("## Attempted before")[0]
    assert re.findall(r"### ([\d.]+) us", survivors) == ["95.00"]


def test_islands_evolve_apart_until_they_migrate(tmp_path):
    comments = {1: " // saves: 7", 2: " // saves: 1", 3: " // saves: 2", 4: " // saves: 3"}
    model = NumberedModel(comments)
    search(tmp_path, model, budget=6, ablate=("kernel",), islands=2, migrate_every=4)
    mutations = [prompt for prompt in model.prompts if prompt.startswith("# Task: mutate")]
    parents = [re.search(r"^ *int tiling = (\d+);", prompt, re.MULTILINE)[1] for prompt in mutations]
    assert parents == ["0", "0", "1", "2", "1", "1"]


def test_every_island_tries_both_dimensions_of_mutation(tmp_path):
    outcome = search(tmp_path, NumberedModel(), budget=4, ablate=("kernel",), islands=2)
    mutations = [step.proposal.origin["mutation"] for step in outcome.history[1:]]
    assert mutations == ["parameter", "parameter", "logic", "logic"]


def test_tiling_search_goes_on_when_a_refinement_left_the_markers_out(tmp_path):
    host = TILING.replace("TilingFunc", "TilingFunc /* markers gone */")
    kernel = "constexpr int K = 1; // saves: 5"
    files = {"op_host/toy.cpp": host, "op_kernel/toy.cpp": kernel}
    answer = "\n".join(render_file(path, text) for path, text in files.items())
    settings = {"schedule": "alternate", "tiling_steps": 1, "refine_steps": 1}
    outcome = search(tmp_path, NumberedModel(answers={2: answer}), budget=3, **settings)
    texts = outcome.history[3].proposal.candidate.texts
    assert "markers gone" in texts["op_host/toy.cpp"]
    assert "int tiling = 3" in texts["op_host/toy.cpp"]
    assert not isinstance(outcome.history[3].proposal, UnusableProposal)


def test_a_template_that_is_refused_counts_as_a_step_of_its_pass(tmp_path):
    class Rewriting(NumberedModel):
        def _answer(self, task, prompt):
            answer = super()._answer(task, prompt)
            if task != "template":
                return answer
            changed = TILING.replace("1024", "512").replace("    int", f"{START}\n    int")
            return f"### FILE: op_host/toy.cpp\n```cpp\n{changed.replace('0;', f'0;{chr(10)}{END}')}```\n"

    class SlowTemplate(SavingEvaluator):
        def _answer(self, number, request):
            slow = "TILE_LENGTH = 512" in request.candidate.tiling_text
            return ok_result(request, 200.0) if slow else super()._answer(number, request)

    settings = {"schedule": "alternate", "tiling_steps": 3, "refine_steps": 1}
    outcome = search(tmp_path, Rewriting(), budget=4, evaluator=SlowTemplate(), **settings)
    assert [step.proposal.origin["kind"] for step in outcome.history[1:]] == [
        "template",
        "mutate-tiling",
        "mutate-tiling",
        "refine",
    ]


def test_standard_headers_may_be_added_outside_of_the_blocks(tmp_path):
    answer = (
        "### FILE: op_host/toy.cpp\n<<<<<<< SEARCH\n"
        "// EVOLVE-BLOCK-START\nconstexpr uint32_t TILE_LENGTH = 1024;"
        "\n=======\n#include <algorithm>\n// EVOLVE-BLOCK-START\nconstexpr uint32_t TILE_LENGTH = 2048;"
        "\n>>>>>>> REPLACE\n"
    )
    settings = {"schedule": "alternate", "tiling_steps": 1, "refine_steps": 1, "rounds": 1}
    outcome = search(tmp_path, NumberedModel(answers={1: answer}), budget=1, **settings)
    assert outcome.history[1].proposal.candidate.tiling_text.startswith("#include <algorithm>\n")


def test_candidates_have_no_markers(tmp_path):
    outcome = search(tmp_path, NumberedModel(), budget=4, tiling_steps=2, refine_steps=2)
    assert all("EVOLVE" not in step.proposal.candidate.tiling_text for step in outcome.history)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("### FILE: op_kernel/toy.cpp\n```cpp\nint other;\n```\n", "EVOLVE-BLOCK-START"),
        ("### FILE: op_host/toy.cpp\n```cpp\nint other;\n```\n", "EVOLVE-BLOCK-START"),
        ("I cannot do that.", "no_files"),
    ],
)
def test_edits_outside_of_the_blocks_are_spent_as_unusable(tmp_path, answer, problem):
    evaluator = SavingEvaluator()
    model = NumberedModel(answers={1: answer})
    outcome = search(tmp_path, model, budget=2, ablate=("kernel",), evaluator=evaluator)
    first = outcome.history[1]
    assert isinstance(first.proposal, UnusableProposal)
    assert problem in first.proposal.problem
    assert first.proposal.origin["answer"].strip() == answer.strip()
    assert [call["purpose"][-1] for call in first.proposal.origin["calls"][-2:]] == [0, "again"]
    assert outcome.evaluations == 2
    assert len(evaluator.requests) == 2
