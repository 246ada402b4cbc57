"""AscendOptimizer step by step: which stage when, what is handed over, what is kept, and exact resume."""

import json
import re

import pytest
from conftest import FakeEvaluator, make_spec, ok_result
from experiences import make_diff, make_experience

from agents.ascend_optimizer.agent import AscendOptimizer
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.incumbent import Incumbent, is_better
from agents.ascend_optimizer.own_rewinds import OwnRewinds
from agents.ascend_optimizer.retrieval import RandomRetriever
from agents.ascend_optimizer.settings import AgentSettings
from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.rewrites.fenced import render_file
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.requests import request_for

TILING = """\
constexpr uint32_t TILE_LENGTH = 1024;
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    int tiling = 0;
}
"""
SPEC = make_spec(tiling=TILING, kernel="int kernel = 0;\n")
BANK = ExperienceBank(
    make_experience(motif=motif, code_diff=make_diff(f"    {motif}();"), bottleneck=f"{motif} symptom")
    for motif in ("one", "two", "three", "four")
)


class NumberedModel:
    """Counts ``tiling`` or ``kernel`` up in its answers, and keeps what it was asked.

    Args:
        comments: comment on the line of each mutated or refined number, by that number.
        answers: answers to give instead, by the number.
    """

    def __init__(self, comments=None, answers=None):
        self.comments, self.answers = comments or {}, answers or {}
        self.tasks, self.prompts, self.number = [], [], 0

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        prompt = messages[-1].content
        if prompt.startswith("Your answer could not be used"):
            return Completion(messages[-2].content, 10, 5, "numbered")
        task = re.match(r"# Task: ([\w-]+)\n", prompt)[1]
        self.tasks.append(task)
        self.prompts.append(prompt)
        return Completion(self._answer(task, prompt), 10, 5, "numbered")

    def _answer(self, task, prompt):
        if task == "template":
            return (
                OfflineModel().complete([Message("user", prompt)], seed=0, max_tokens=9999, deadline_s=1).text
            )
        if task == "diagnose":
            return "Bottleneck: three symptom\nApplicability: loops"
        self.number += 1
        if self.number in self.answers:
            return self.answers[self.number]
        word, side = ("tiling", "host") if task == "mutate-tiling" else ("kernel", "kernel")
        old = re.search(rf"^ *int {word} = .*$", prompt, re.MULTILINE)[0]
        comment = self.comments.get(self.number, "")
        new = f"    int {word} = {self.number};{comment}"
        return f"### FILE: op_{side}/toy.cpp\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


class SavingEvaluator(FakeEvaluator):
    """Takes off 100 us what the marks ``// saves: 7`` of both sides say."""

    def _answer(self, number, request):
        text = request.candidate.tiling_text + request.candidate.kernel_text
        if "status" in text:
            return super()._answer(number, request)
        saved = sum(float(value) for value in re.findall(r"// saves: ([\d.]+)", text))
        return ok_result(request, 100.0 - saved)


def _agent(llm, seed=0, retriever=None, **settings):
    model_client = ModelClient(llm, seed=seed)
    return AscendOptimizer(
        SPEC,
        online=model_client,
        offline=model_client,
        retriever=retriever,
        settings=AgentSettings(**settings),
    )


def _search(folder, llm, *, budget, evaluator=None, in_flight=1, retriever=None, spec=SPEC, **settings):
    with Journal(folder) as journal:
        return run_search(
            spec,
            _agent(llm, retriever=retriever, **settings),
            evaluator or SavingEvaluator(),
            BudgetLedger(Budget(budget)),
            journal,
            in_flight=in_flight,
        )


def _stages(outcome):
    return [
        (step.proposal.origin["stage"], step.proposal.origin["round"], step.proposal.origin["step"])
        for step in outcome.history[1:]
    ]


def test_alternate_is_tiling_search_then_refinement_round_after_round(tmp_path):
    settings = {"schedule": "alternate", "tiling_steps": 2, "refine_steps": 3}
    outcome = _search(tmp_path, NumberedModel(), budget=9, **settings)
    first = [("tiling", 1, 0), ("tiling", 1, 1), ("kernel", 1, 0), ("kernel", 1, 1), ("kernel", 1, 2)]
    second = [("tiling", 2, 0), ("tiling", 2, 1), ("kernel", 2, 0), ("kernel", 2, 1)]
    assert _stages(outcome) == first + second
    assert outcome.stop_reason is StopReason.BUDGET_SPENT


def test_refine_then_tile_begins_with_the_kernel_and_ends_after_its_rounds(tmp_path):
    settings = {"schedule": "refine-then-tile", "tiling_steps": 1, "refine_steps": 2, "rounds": 2}
    outcome = _search(tmp_path, NumberedModel(), budget=50, **settings)
    assert [stage for stage, *_ in _stages(outcome)] == ["kernel", "kernel", "tiling"] * 2
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED


@pytest.mark.parametrize(("ablated", "stage"), [("tiling", "kernel"), ("kernel", "tiling")])
def test_without_a_stage_the_other_one_has_the_whole_budget(tmp_path, ablated, stage):
    model = NumberedModel()
    outcome = _search(tmp_path, model, budget=5, ablate=(ablated,), tiling_steps=2, refine_steps=2)
    assert {each for each, *_ in _stages(outcome)} == {stage}
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
    outcome = _search(tmp_path, NumberedModel(comments), budget=5, **settings)
    assert [step.result.latency_us for step in outcome.history] == pytest.approx([100, 90, 95, 89, 70, 69])
    texts = [step.proposal.candidate.texts for step in outcome.history]
    assert "int kernel = 4" in texts[5]["op_kernel/toy.cpp"]
    assert "int tiling = 1" in texts[4]["op_host/toy.cpp"]


def test_the_kernel_is_kept_only_if_it_is_faster(tmp_path):
    comments = {1: " // saves: 10", 2: " // saves: 10", 3: " // saves: 12"}
    model = NumberedModel(comments)
    _search(tmp_path, model, budget=4, ablate=("tiling",))
    refined = [prompt for prompt in model.prompts if prompt.startswith("# Task: refine")]
    shown = [re.search(r"int kernel = (\d+);", prompt)[1] for prompt in refined]
    assert shown == ["0", "1", "1", "3"]


def test_the_first_correct_version_of_an_operator_without_sources_replaces_the_price_of_calls():
    unwritten = list_operators("generate")[0]
    request = request_for(unwritten, unwritten.baseline, MeasureProtocol())
    calls, slower = Incumbent(unwritten.baseline, ok_result(request, 50.0)), ok_result(request, 80.0)
    assert is_better(unwritten, slower, calls)
    assert not is_better(SPEC, slower, calls)  # its baseline is another: sources of its own


def test_invalid_offspring_are_discarded_at_once_and_told_of(tmp_path):
    comments = {1: " // status: incorrect", 2: " // saves: 7"}
    model = NumberedModel(comments)
    outcome = _search(tmp_path, model, budget=3, ablate=("kernel",))
    mutations = [prompt for prompt in model.prompts if prompt.startswith("# Task: mutate")]
    parents = [re.search(r"^ *int tiling = (\d+);", prompt, re.MULTILINE)[1] for prompt in mutations]
    assert parents == ["0", "0", "2"]
    assert "### Attempt 1, failed: incorrect (tiling)\n- [run_kernel]" in mutations[1]
    assert re.search(r"^\+ *int tiling = 1; // status: incorrect$", mutations[1], re.MULTILINE)
    assert outcome.best_latency_us == pytest.approx(93)


def test_survivors_beside_the_parent_are_shown(tmp_path):
    model = NumberedModel({1: " // saves: 7", 2: " // saves: 5"})
    _search(tmp_path, model, budget=3, ablate=("kernel",), population=2)
    last = model.prompts[-1]
    survivors = last.split("## Other survivors")[1].split("## Attempted before")[0]
    assert re.findall(r"### ([\d.]+) us", survivors) == ["95.00"]


def test_islands_evolve_apart_until_they_migrate(tmp_path):
    comments = {1: " // saves: 7", 2: " // saves: 1", 3: " // saves: 2", 4: " // saves: 3"}
    model = NumberedModel(comments)
    _search(tmp_path, model, budget=6, ablate=("kernel",), islands=2, migrate_every=4)
    mutations = [prompt for prompt in model.prompts if prompt.startswith("# Task: mutate")]
    parents = [re.search(r"^ *int tiling = (\d+);", prompt, re.MULTILINE)[1] for prompt in mutations]
    assert parents == ["0", "0", "1", "2", "1", "1"]


def test_every_island_tries_both_dimensions_of_mutation(tmp_path):
    outcome = _search(tmp_path, NumberedModel(), budget=4, ablate=("kernel",), islands=2)
    mutations = [step.proposal.origin["mutation"] for step in outcome.history[1:]]
    assert mutations == ["parameter", "parameter", "logic", "logic"]


def test_tiling_search_goes_on_when_a_refinement_left_the_markers_out(tmp_path):
    host = TILING.replace("TilingFunc", "TilingFunc /* markers gone */")
    kernel = "constexpr int K = 1; // saves: 5"
    files = {"op_host/toy.cpp": host, "op_kernel/toy.cpp": kernel}
    answer = "\n".join(render_file(path, text) for path, text in files.items())
    settings = {"schedule": "alternate", "tiling_steps": 1, "refine_steps": 1}
    outcome = _search(tmp_path, NumberedModel(answers={2: answer}), budget=3, **settings)
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
    outcome = _search(tmp_path, Rewriting(), budget=4, evaluator=SlowTemplate(), **settings)
    assert [step.proposal.origin["kind"] for step in outcome.history[1:]] == [
        "template",
        "mutate-tiling",
        "mutate-tiling",
        "refine",
    ]


def test_a_pass_ends_early_after_steps_in_vain(tmp_path):
    settings = {"tiling_steps": 9, "refine_steps": 9, "patience": 2, "rounds": 1}
    outcome = _search(tmp_path, NumberedModel(comments={1: "// saves: 5"}), budget=50, **settings)
    assert [each for each, *_ in _stages(outcome)] == ["kernel"] * 3 + ["tiling"] * 2


def test_a_pass_ends_where_the_model_proposes_nothing_and_comes_again_when_the_tiling_has_changed(tmp_path):
    settings = {"schedule": "alternate", "tiling_steps": 4, "refine_steps": 2, "rounds": 3}
    nothing = "I know of nothing more to change."
    outcome = _search(tmp_path, NumberedModel(answers={2: nothing}), budget=50, **settings)
    first = [("tiling", 1, 0), ("tiling", 1, 1), ("kernel", 1, 0), ("kernel", 1, 1)]
    assert _stages(outcome) == [
        *first,
        ("kernel", 2, 0),
        ("kernel", 2, 1),
        ("kernel", 3, 0),
        ("kernel", 3, 1),
    ]
    gains = {
        1: "// saves: 5"
    }  # the pass goes on from another T than the one that there was nothing to say of
    outcome = _search(tmp_path / "two", NumberedModel(gains, {1: nothing, 2: nothing}), budget=50, **settings)
    assert _stages(outcome)[:2] == [("tiling", 1, 0), ("kernel", 1, 0)]


def test_refinement_ends_where_the_model_proposes_nothing(tmp_path):
    settings = {"tiling_steps": 1, "refine_steps": 4, "rounds": 1}
    outcome = _search(tmp_path, NumberedModel(answers={2: "Nothing comes to mind."}), budget=50, **settings)
    assert [each for each, *_ in _stages(outcome)] == ["kernel", "kernel", "tiling"]


def test_standard_headers_may_be_added_outside_of_the_blocks(tmp_path):
    answer = (
        "### FILE: op_host/toy.cpp\n<<<<<<< SEARCH\n"
        "// EVOLVE-BLOCK-START\nconstexpr uint32_t TILE_LENGTH = 1024;"
        "\n=======\n#include <algorithm>\n// EVOLVE-BLOCK-START\nconstexpr uint32_t TILE_LENGTH = 2048;"
        "\n>>>>>>> REPLACE\n"
    )
    settings = {"schedule": "alternate", "tiling_steps": 1, "refine_steps": 1, "rounds": 1}
    outcome = _search(tmp_path, NumberedModel(answers={1: answer}), budget=1, **settings)
    assert outcome.history[1].proposal.candidate.tiling_text.startswith("#include <algorithm>\n")


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


def test_candidates_have_no_markers(tmp_path):
    outcome = _search(tmp_path, NumberedModel(), budget=4, tiling_steps=2, refine_steps=2)
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
    outcome = _search(tmp_path, model, budget=2, ablate=("kernel",), evaluator=evaluator)
    first = outcome.history[1]
    assert isinstance(first.proposal, UnusableProposal)
    assert problem in first.proposal.problem
    assert first.proposal.origin["answer"].strip() == answer.strip()
    assert [call["purpose"][-1] for call in first.proposal.origin["calls"][-2:]] == [0, "again"]
    assert outcome.evaluations == 2
    assert len(evaluator.requests) == 2


def test_refinement_may_not_touch_the_tiling(tmp_path):
    answer = "### FILE: op_host/toy.cpp\n```cpp\nint other;\n```\n"
    outcome = _search(tmp_path, NumberedModel(answers={1: answer}), budget=1, ablate=("tiling",))
    assert "op_kernel alone" in outcome.history[1].proposal.problem


def test_experience_is_retrieved_told_and_put_on_record(tmp_path):
    model = NumberedModel()
    retriever = RandomRetriever(BANK, 0)
    outcome = _search(tmp_path, model, budget=1, ablate=("tiling",), retriever=retriever, top_k=2)
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
    _search(tmp_path, model, budget=1, ablate=("tiling",), retriever=RandomRetriever(bank, 0))
    assert "### Experience" not in model.prompts[-1]


def test_experience_shown_in_vain_gives_way_to_other_experience(tmp_path):
    model = NumberedModel()
    retriever = RandomRetriever(BANK, 0)
    outcome = _search(tmp_path, model, budget=2, ablate=("tiling",), retriever=retriever, top_k=2)
    first, second = (set(step.proposal.origin["experience"]) for step in outcome.history[1:])
    assert not first & second


def test_proposals_wait_for_results_and_do_not_depend_on_how_many_are_in_flight(tmp_path):
    journals = []
    for in_flight in (1, 4):
        folder = tmp_path / str(in_flight)
        _search(folder, NumberedModel(), budget=7, in_flight=in_flight, tiling_steps=2, refine_steps=2)
        journals.append((folder / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1]


@pytest.mark.parametrize("schedule", ["alternate", "refine-then-tile"])
def test_a_run_cut_anywhere_is_resumed_to_the_same_journal(tmp_path, schedule):
    settings = {"schedule": schedule, "tiling_steps": 2, "refine_steps": 2, "budget": 5}
    comments = {1: " // saves: 7", 2: " // status: timeout", 3: " // saves: 3"}
    retriever = RandomRetriever(BANK, 0)
    _search(tmp_path / "whole", NumberedModel(comments), retriever=retriever, **settings)
    whole = (tmp_path / "whole" / JOURNAL_NAME).read_bytes()
    timings = (tmp_path / "whole" / "timings.jsonl").read_bytes()
    for cut in range(1, whole.count(b"\n"), 2):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(b"".join(whole.splitlines(keepends=True)[:cut]) + b'{"torn')
        (folder / "timings.jsonl").write_bytes(timings)
        _search(folder, NumberedModel(comments), retriever=retriever, **settings)
        assert (folder / JOURNAL_NAME).read_bytes() == whole


def test_a_model_that_fails_ends_the_search_resumably(tmp_path):
    class Failing(NumberedModel):
        def complete(self, messages, **options):
            if len(self.tasks) == 4:
                raise ModelError("gone")
            return super().complete(messages, **options)

    outcome = _search(tmp_path, Failing(), budget=9, tiling_steps=2, refine_steps=2)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert outcome.evaluations == 2
    resumed = _search(tmp_path, NumberedModel(), budget=9, tiling_steps=2, refine_steps=2)
    assert resumed.evaluations == 9


def test_results_that_say_nothing_are_no_attempts(tmp_path):
    model = NumberedModel()
    evaluator = SavingEvaluator({1: Status.INVALID_REQUEST})
    _search(tmp_path, model, budget=1, ablate=("tiling",), evaluator=evaluator)
    assert "Nothing was attempted yet." in model.prompts[-1]


def test_nothing_is_proposed_before_the_baseline():
    assert _agent(NumberedModel()).propose(1) == []


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
