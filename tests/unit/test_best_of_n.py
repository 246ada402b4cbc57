"""Best-of-N: independent samples, exact accounting, and the same run for any number of workers."""

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Proposal
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN, StopReason, UnusableProposal
from ascend_gym.search.search_rules import SearchRules
from ascend_gym.search.seeds import derived_seed
from ascend_gym.suite.requests import request_for
from baselines.best_of_n import BestOfN

TILING = "constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n"
KERNEL = """\
constexpr int32_t BUFFER_NUM = 1;
class K {
    void Compute(uint32_t n)
    {
        Mul(d, d, a, n);
        PipeBarrier<PIPE_ALL>();
        Add(d, d, b, n);
    }
};
"""
SPEC = make_spec(tiling=TILING, kernel=KERNEL)


class PricingEvaluator(FakeEvaluator):
    """Prices candidates by their digest, so that equal candidates cost the same and others differ."""

    def _answer(self, number, request):
        return ok_result(request, 20.0 + int(request.candidate.digest[:4], 16) / 600)


class ScriptedModel:
    """Answers from a list and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.asked.append((messages, seed, max_tokens, deadline_s))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, 10, 5, "scripted")


def _search(folder, llm, *, samples, seed=0, budget=None, in_flight=1, evaluator=None):
    strategy = BestOfN(SPEC, ModelClient(llm, seed=seed), samples=samples)
    with Journal(folder) as journal:
        return run_search(
            SPEC,
            strategy,
            evaluator or PricingEvaluator(),
            BudgetLedger(Budget(samples if budget is None else budget)),
            journal,
            SearchRules(settings={"method": "best-of-n", "seed": seed}),
            in_flight=in_flight,
        )


def _edit(old, new):
    return f"### FILE: op_host/toy.cpp\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def test_the_same_seed_gives_the_same_journal_for_any_number_in_flight(tmp_path):
    journals = []
    for name, in_flight in (("a", 1), ("b", 4), ("c", 1)):
        _search(tmp_path / name, OfflineModel(), samples=12, seed=5, in_flight=in_flight)
        journals.append((tmp_path / name / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1] == journals[2]
    _search(tmp_path / "d", OfflineModel(), samples=12, seed=6)
    assert (tmp_path / "d" / JOURNAL_NAME).read_bytes() != journals[0]


def test_a_smaller_n_is_the_beginning_of_a_larger_one(tmp_path):
    def digests(outcome):
        return [step.proposal.candidate.digest for step in outcome.history]

    small = _search(tmp_path / "small", OfflineModel(), samples=4)
    large = _search(tmp_path / "large", OfflineModel(), samples=9)
    assert digests(large)[: len(small.history)] == digests(small)
    assert large.best_latency_us <= small.best_latency_us


def test_the_fastest_sample_wins(tmp_path):
    outcome = _search(tmp_path, OfflineModel(), samples=15)
    latencies = [step.result.latency_us for step in outcome.history]
    assert outcome.best_latency_us == min(latencies)
    assert outcome.evaluations == 15
    assert outcome.stop_reason is StopReason.BUDGET_SPENT


@pytest.mark.parametrize(
    "answer", ["no file \ud800", "", _edit("constexpr uint32_t BLOCK_DIM = 8;", "BLOCK \ud800 DIM")]
)
def test_lone_surrogates_of_a_model_do_not_stop_the_search(tmp_path, answer):
    evaluator = FakeEvaluator({1: Status.BUILD_ERROR})
    outcome = _search(tmp_path, ScriptedModel(answer, answer), samples=1, evaluator=evaluator)
    assert [step.result.status for step in outcome.history] == [Status.OK, Status.BUILD_ERROR]
    with Journal(tmp_path) as journal:
        assert journal.records[-1]["evaluations"] == 1


def test_every_sample_sees_the_same_prompt_and_a_seed_of_its_own(tmp_path):
    llm = ScriptedModel(*[_edit("constexpr uint32_t TILE_LENGTH = 1024;", "x")] * 3)
    _search(tmp_path, llm, samples=3, seed=9)
    prompts, seeds, *_ = zip(*llm.asked, strict=True)
    assert prompts[0] == prompts[1] == prompts[2]
    assert list(seeds) == [derived_seed(9, "best-of-n", index) for index in range(3)]
    assert "latency: " in prompts[0][1].content


def test_unusable_answers_are_spent_as_failed_builds_and_kept_in_the_journal(tmp_path):
    usable = _edit("constexpr uint32_t BLOCK_DIM = 8;", "constexpr uint32_t BLOCK_DIM = 48;")
    evaluator = PricingEvaluator()
    model = ScriptedModel("I cannot.", "I cannot.", usable, "", "")
    outcome = _search(tmp_path, model, samples=3, evaluator=evaluator)
    assert [step.result.status for step in outcome.history[1:]] == [
        Status.BUILD_ERROR,
        Status.OK,
        Status.BUILD_ERROR,
    ]
    assert outcome.evaluations == 3
    assert len(evaluator.requests) == 2
    with Journal(tmp_path) as journal:
        origins = [record["origin"] for record in journal.records if record["kind"] == "proposal"]
    assert origins[1]["answer"] == "I cannot."
    assert "answer" not in origins[2]
    assert origins[2]["calls"][0]["prompt_tokens"] == 10
    assert len({origin["calls"][0]["prompt_digest"] for origin in origins[1:]}) == 1


def test_equal_samples_cost_an_evaluation_each(tmp_path):
    llm = ScriptedModel(
        *[_edit("constexpr uint32_t BLOCK_DIM = 8;", "constexpr uint32_t BLOCK_DIM = 48;")] * 3
    )
    assert _search(tmp_path, llm, samples=3).evaluations == 3


def test_fewer_samples_than_budget_end_the_search(tmp_path):
    outcome = _search(tmp_path, OfflineModel(), samples=2, budget=10)
    assert outcome.evaluations == 2
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED


def test_a_model_that_fails_ends_the_search_with_the_best_so_far(tmp_path):
    usable = _edit("constexpr uint32_t BLOCK_DIM = 8;", "constexpr uint32_t BLOCK_DIM = 48;")
    model = ScriptedModel(usable, ModelError("busy"), ModelError("quota"))
    outcome = _search(tmp_path, model, samples=5, in_flight=3)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "quota" in outcome.message
    assert outcome.evaluations == 1


def test_nothing_is_proposed_before_the_baseline_is_known():
    assert BestOfN(SPEC, ModelClient(ScriptedModel(), seed=0), samples=3).propose(3) == []


def _observed(llm=None, samples=4, model_client=None):
    strategy = BestOfN(SPEC, model_client or ModelClient(llm or OfflineModel(), seed=2), samples=samples)
    baseline = ok_result(request_for(SPEC, SPEC.baseline, MeasureProtocol()), 100.0)
    strategy.observe(Proposal(SPEC.baseline, BASELINE_ORIGIN), baseline)
    return strategy


def test_propose_keeps_to_its_limit_and_to_n():
    strategy = _observed(samples=4)
    assert [len(strategy.propose(limit)) for limit in (3, 3, 3)] == [3, 1, 0]


def test_samples_drawn_at_the_same_time_are_the_same_samples():
    def proposals(concurrency, limits):
        model_client = ModelClient(OfflineModel(), seed=2, concurrency=concurrency)
        strategy = _observed(model_client=model_client)
        return [each for limit in limits for each in strategy.propose(limit)]

    assert proposals(1, [1] * 4) == proposals(3, [2, 1, 1]) == proposals(8, [4])


def test_unusable_proposals_carry_the_baseline():
    (proposal,) = _observed(ScriptedModel("no", "no")).propose(1)
    assert isinstance(proposal, UnusableProposal)
    assert proposal.candidate == SPEC.baseline
    assert "no_files" in proposal.problem


@pytest.mark.parametrize("seed", [0, 1, 2**40, -5])
def test_derived_seeds_are_31_bits_and_differ_by_purpose(seed):
    seeds = {derived_seed(seed, "sample", index) for index in range(200)}
    assert len(seeds) == 200
    assert all(0 <= value < 2**31 for value in seeds)
    assert derived_seed(seed, "a", 1) != derived_seed(seed, "b", 1) != derived_seed(seed + 1, "b", 1)
