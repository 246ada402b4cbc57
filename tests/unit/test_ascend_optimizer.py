"""AscendOptimizer step by step: which stage when, what is handed over, what is kept, and exact resume."""

import json
import re

import pytest
from conftest import FakeEvaluator, make_spec, ok_result
from experiences import make_experience
from numbered_search import BANK, SPEC, TILING, NumberedModel, SavingEvaluator, agent_of, search, stages

from agents.ascend_optimizer.agent import AscendOptimizer
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.incumbent import Incumbent, is_better
from agents.ascend_optimizer.own_rewinds import OwnRewinds
from agents.ascend_optimizer.retrieval import RandomRetriever
from agents.ascend_optimizer.settings import AgentSettings
from ascend_gym.core.errors import ModelError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.requests import request_for


def test_alternate_is_tiling_search_then_refinement_round_after_round(tmp_path):
    settings = {"schedule": "alternate", "tiling_steps": 2, "refine_steps": 3}
    outcome = search(tmp_path, NumberedModel(), budget=9, **settings)
    first = [("tiling", 1, 0), ("tiling", 1, 1), ("kernel", 1, 0), ("kernel", 1, 1), ("kernel", 1, 2)]
    second = [("tiling", 2, 0), ("tiling", 2, 1), ("kernel", 2, 0), ("kernel", 2, 1)]
    assert stages(outcome) == first + second
    assert outcome.stop_reason is StopReason.BUDGET_SPENT


def test_refine_then_tile_begins_with_the_kernel_and_ends_after_its_rounds(tmp_path):
    settings = {"schedule": "refine-then-tile", "tiling_steps": 1, "refine_steps": 2, "rounds": 2}
    outcome = search(tmp_path, NumberedModel(), budget=50, **settings)
    assert [stage for stage, *_ in stages(outcome)] == ["kernel", "kernel", "tiling"] * 2
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED


def test_passes_grow_by_a_step_a_round_up_to_their_length(tmp_path):
    settings = {"tiling_steps": 3, "refine_steps": 2, "first_steps": 1, "rounds": 3}
    outcome = search(tmp_path, NumberedModel(), budget=50, **settings)
    lengths = {1: (1, 1), 2: (2, 2), 3: (2, 3)}
    expected = [
        stage for refined, tiled in lengths.values() for stage in ["kernel"] * refined + ["tiling"] * tiled
    ]
    assert [stage for stage, *_ in stages(outcome)] == expected
    model = NumberedModel()
    search(tmp_path / "told", model, budget=50, **settings)
    told = [re.search(r"This is step (.*) of this pass", prompt) for prompt in model.prompts]
    assert [found[1] for found in told if found][-5:] == [
        *("1 of at most 2", "2 of at most 2"),
        *("1 of at most 3", "2 of at most 3", "3 of at most 3"),
    ]


@pytest.mark.parametrize(("ablated", "stage"), [("tiling", "kernel"), ("kernel", "tiling")])
def test_without_a_stage_the_other_one_has_the_whole_budget(tmp_path, ablated, stage):
    model = NumberedModel()
    outcome = search(tmp_path, model, budget=5, ablate=(ablated,), tiling_steps=2, refine_steps=2)
    assert {each for each, *_ in stages(outcome)} == {stage}
    assert ("template" in model.tasks) == (stage == "tiling")


def test_nothing_to_do_is_refused():
    with pytest.raises(ValueError, match="nothing to do"):
        AgentSettings(ablate=("tiling", "kernel"))


def test_each_stage_inherits_what_the_other_found(tmp_path):
    # numbers 1, 2 are T, 3, 4 are K, 5 is T again
    comments = {
        1: " // saves: 10",
        2: " // saves: 5",
        3: " // saves: 1",
        4: " // saves: 20",
        5: " // saves: 11",
    }
    settings = {"schedule": "alternate", "tiling_steps": 2, "refine_steps": 2}
    outcome = search(tmp_path, NumberedModel(comments), budget=5, **settings)
    assert [step.result.latency_us for step in outcome.history] == pytest.approx([100, 90, 95, 89, 70, 69])
    texts = [step.proposal.candidate.texts for step in outcome.history]
    assert "int kernel = 4" in texts[5]["op_kernel/toy.cpp"]
    assert "int tiling = 1" in texts[4]["op_host/toy.cpp"]


def test_the_kernel_is_kept_only_if_it_is_faster(tmp_path):
    comments = {1: " // saves: 10", 2: " // saves: 10", 3: " // saves: 12"}
    model = NumberedModel(comments)
    search(tmp_path, model, budget=4, ablate=("tiling",))
    refined = [prompt for prompt in model.prompts if prompt.startswith("# Task: refine")]
    shown = [re.search(r"int kernel = (\d+);", prompt)[1] for prompt in refined]
    assert shown == ["0", "1", "1", "3"]


def test_the_first_correct_version_of_an_operator_without_sources_replaces_the_price_of_calls():
    unwritten = list_operators("generate")[0]
    request = request_for(unwritten, unwritten.baseline, MeasureProtocol())
    calls, slower = Incumbent(unwritten.baseline, ok_result(request, 50.0)), ok_result(request, 80.0)
    assert is_better(unwritten, slower, calls)
    assert not is_better(SPEC, slower, calls)  # its baseline is another: sources of its own


def test_a_pass_ends_early_after_steps_in_vain(tmp_path):
    settings = {"tiling_steps": 9, "refine_steps": 9, "patience": 2, "rounds": 1}
    outcome = search(tmp_path, NumberedModel(comments={1: "// saves: 5"}), budget=50, **settings)
    assert [each for each, *_ in stages(outcome)] == ["kernel"] * 3 + ["tiling"] * 2


def test_a_pass_ends_where_the_model_proposes_nothing_and_comes_again_when_the_tiling_has_changed(tmp_path):
    settings = {"schedule": "alternate", "tiling_steps": 4, "refine_steps": 2, "rounds": 3}
    nothing = "I know of nothing more to change."
    outcome = search(tmp_path, NumberedModel(answers={2: nothing}), budget=50, **settings)
    first = [("tiling", 1, 0), ("tiling", 1, 1), ("kernel", 1, 0), ("kernel", 1, 1)]
    assert stages(outcome) == [
        *first,
        ("kernel", 2, 0),
        ("kernel", 2, 1),
        ("kernel", 3, 0),
        ("kernel", 3, 1),
    ]
    gains = {
        1: "// saves: 5"
    }  # the pass goes on from another T than the one that there was nothing to say of
    outcome = search(tmp_path / "two", NumberedModel(gains, {1: nothing, 2: nothing}), budget=50, **settings)
    assert stages(outcome)[:2] == [("tiling", 1, 0), ("kernel", 1, 0)]


def test_refinement_ends_where_the_model_proposes_nothing(tmp_path):
    settings = {"tiling_steps": 1, "refine_steps": 4, "rounds": 1}
    outcome = search(tmp_path, NumberedModel(answers={2: "Nothing comes to mind."}), budget=50, **settings)
    assert [each for each, *_ in stages(outcome)] == ["kernel", "kernel", "tiling"]


def test_a_run_learns_from_its_own_operator_first_and_is_charged_for_it(tmp_path):
    class Slower(FakeEvaluator):
        def _answer(self, number, request):
            return ok_result(request, 100.0 + 10.0 * number)

    spec, model_client, learnt = _toy_with_motifs(), ModelClient(OfflineModel(), seed=1), []

    def retriever_with(experiences):
        learnt.extend(experiences)
        return RandomRetriever(ExperienceBank([*BANK, *experiences]), 0)

    agent = AscendOptimizer(
        spec,
        online=model_client,
        offline=model_client,
        retriever=None,
        settings=AgentSettings(tiling_steps=1, refine_steps=2),
        own_rewinds=OwnRewinds(spec, model_client, steps=2, seed=1, retriever_with=retriever_with),
    )
    with Journal(tmp_path) as journal:
        outcome = run_search(spec, agent, Slower(), BudgetLedger(Budget(4)), journal)
    kinds = [step.proposal.origin["kind"] for step in outcome.history[1:]]
    assert kinds == ["rewind", "rewind", "refine", "refine"]
    assert len(learnt) == 2
    assert {each.operator for each in learnt} == {spec.op_id}
    assert outcome.history[3].proposal.origin["experience"]
    start = spec.baseline.kernel_text
    assert outcome.history[1].proposal.candidate.kernel_text != start


def test_refinement_may_not_touch_the_tiling(tmp_path):
    answer = "### FILE: op_host/toy.cpp\n```cpp\nint other;\n```\n"
    outcome = search(tmp_path, NumberedModel(answers={1: answer}), budget=1, ablate=("tiling",))
    assert "expected changes in `op_kernel/toy.cpp` alone" in outcome.history[1].proposal.problem


def test_experience_is_retrieved_told_and_put_on_record(tmp_path):
    model = NumberedModel()
    retriever = RandomRetriever(BANK, 0)
    outcome = search(tmp_path, model, budget=1, ablate=("tiling",), retriever=retriever, top_k=2)
    prompt = model.prompts[-1]
    assert len(re.findall(r"^### Experience \d", prompt, re.MULTILINE)) == 2
    assert "1.200x faster (12.00 -> 10.00 us)" in prompt
    assert "avoid when: raw tensors are shared" in prompt
    digests = outcome.history[1].proposal.origin["experience"]
    assert set(digests) < {experience.digest[:16] for experience in BANK}
    calls = outcome.history[1].proposal.origin["calls"]
    assert [call["purpose"][0] for call in calls] == ["diagnose", "refine"]
    assert len({call["prompt_digest"] for call in calls}) == 2


def test_experience_with_tiling_programs_is_not_shown_under_a_fixed_tiling(tmp_path):
    bank = ExperienceBank([make_experience(motif="block_dim", family="host.tiling.block_dim")])
    model = NumberedModel()
    search(tmp_path, model, budget=1, ablate=("tiling",), retriever=RandomRetriever(bank, 0))
    assert "### Experience" not in model.prompts[-1]


def test_experience_shown_in_vain_gives_way_to_other_experience(tmp_path):
    model = NumberedModel()
    retriever = RandomRetriever(BANK, 0)
    outcome = search(tmp_path, model, budget=2, ablate=("tiling",), retriever=retriever, top_k=2)
    first, second = (set(step.proposal.origin["experience"]) for step in outcome.history[1:])
    assert not first & second


def test_proposals_wait_for_results_and_do_not_depend_on_how_many_are_in_flight(tmp_path):
    journals = []
    for in_flight in (1, 4):
        folder = tmp_path / str(in_flight)
        search(folder, NumberedModel(), budget=7, in_flight=in_flight, tiling_steps=2, refine_steps=2)
        journals.append((folder / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1]


@pytest.mark.parametrize("schedule", ["alternate", "refine-then-tile"])
def test_a_run_cut_anywhere_is_resumed_to_the_same_journal(tmp_path, schedule):
    settings = {"schedule": schedule, "tiling_steps": 2, "refine_steps": 2, "budget": 5}
    comments = {1: " // saves: 7", 2: " // status: timeout", 3: " // saves: 3"}
    retriever = RandomRetriever(BANK, 0)
    search(tmp_path / "whole", NumberedModel(comments), retriever=retriever, **settings)
    whole = (tmp_path / "whole" / JOURNAL_NAME).read_bytes()
    timings = (tmp_path / "whole" / "timings.jsonl").read_bytes()
    for cut in range(1, whole.count(b"\n"), 2):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(b"".join(whole.splitlines(keepends=True)[:cut]) + b'{"torn')
        (folder / "timings.jsonl").write_bytes(timings)
        search(folder, NumberedModel(comments), retriever=retriever, **settings)
        assert (folder / JOURNAL_NAME).read_bytes() == whole


def test_a_model_that_fails_ends_the_search_resumably(tmp_path):
    class Failing(NumberedModel):
        def complete(self, messages, **options):
            if len(self.tasks) == 4:
                raise ModelError("gone")
            return super().complete(messages, **options)

    outcome = search(tmp_path, Failing(), budget=9, tiling_steps=2, refine_steps=2)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert outcome.evaluations == 2
    resumed = search(tmp_path, NumberedModel(), budget=9, tiling_steps=2, refine_steps=2)
    assert resumed.evaluations == 9


def test_results_that_say_nothing_are_no_attempts(tmp_path):
    model = NumberedModel()
    evaluator = SavingEvaluator({1: Status.INVALID_REQUEST})
    search(tmp_path, model, budget=1, ablate=("tiling",), evaluator=evaluator)
    assert "Nothing was attempted yet." in model.prompts[-1]


def test_nothing_is_proposed_before_the_baseline():
    assert agent_of(NumberedModel()).propose(1) == []


def _toy_with_motifs():
    body = "Mul(d, d, a, n);\n    PipeBarrier<PIPE_ALL>();\n    Add(d, d, b, n);"
    kernel = f"constexpr int32_t BUFFER_NUM = 1;\nvoid f()\n{{\n    {body}\n}}\n"
    return make_spec(tiling=TILING, kernel=kernel)


def test_the_offline_model_plays_every_part(tmp_path):
    spec = _toy_with_motifs()
    model_client = ModelClient(OfflineModel(), seed=1)
    agent = AscendOptimizer(
        spec,
        online=model_client,
        offline=model_client,
        retriever=RandomRetriever(BANK, 0),
        settings=AgentSettings(tiling_steps=3, refine_steps=3),
    )
    with Journal(tmp_path) as journal:
        outcome = run_search(spec, agent, FakeEvaluator(), BudgetLedger(Budget(6)), journal)
        assert json.dumps(journal.records)
    unusable = [step for step in outcome.history if isinstance(step.proposal, UnusableProposal)]
    assert len(unusable) <= 1
    assert len({step.proposal.candidate.digest for step in outcome.history}) >= 6
