"""Methods without a model: what each proposes, the same run however it is driven, and exact resume."""

import pytest
from conftest import FakeEvaluator, make_spec, ok_result
from rewritten import rule_named

from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.knobs import MAX_KNOBS, knobs_of, turned
from ascend_gym.rewrites.library import moves_of
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.outcome import BASELINE_ORIGIN, StopReason
from ascend_gym.search.search_rules import SearchRules
from ascend_gym.suite.requests import request_for
from baselines.greedy_rules import GreedyRules
from baselines.random_rewrites import RandomRewrites

TILING = "constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n"
KERNEL = """\
constexpr int32_t BUFFER_NUM = 1;
class K {
    void Compute(uint32_t n)
    {
        Mul(d, d, a, n);
        PipeBarrier<PIPE_ALL>();
        Add(d, d, b, n);
        PipeBarrier<PIPE_ALL>();
        Exp(d, d, n);
    }
};
"""
SPEC = make_spec(tiling=TILING, kernel=KERNEL)
BARE = make_spec()


def _knobs():
    pytest.importorskip("optuna")
    from baselines import knob_search

    return knob_search


METHODS = {
    "random-rewrites": lambda spec, seed: RandomRewrites(spec, seed=seed),
    "greedy-rules": lambda spec, seed: GreedyRules(spec),
    "knob-search": lambda spec, seed: _knobs().KnobSearch(spec, seed=seed),
}


class PricingEvaluator(FakeEvaluator):
    """Prices candidates by their digest; one in eight does not build. Each answer comes after a later one."""

    def _answer(self, number, request):
        if int(request.candidate.digest[-1], 16) < 2 and request.candidate != SPEC.baseline:
            return failed_result(
                request, Status.BUILD_ERROR, Diagnostic(phase=Phase.BUILD_KERNEL, message="no")
            )
        return ok_result(request, 20.0 + int(request.candidate.digest[:4], 16) / 600)

    def arrived(self, timeout_s):
        return super().arrived(timeout_s)[::-1]


def _search(folder, method, *, budget=20, seed=0, in_flight=1, evaluator=None, spec=SPEC):
    with Journal(folder) as journal:
        return run_search(
            spec,
            METHODS[method](spec, seed),
            evaluator or PricingEvaluator(),
            BudgetLedger(Budget(budget)),
            journal,
            SearchRules(settings={"method": method, "seed": seed}),
            in_flight=in_flight,
        )


def _journal(folder):
    return (folder / JOURNAL_NAME).read_bytes()


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def test_the_journal_is_the_same_for_any_number_in_flight(tmp_path, method):
    for in_flight in (1, 4):
        _search(tmp_path / str(in_flight), method, in_flight=in_flight)
    assert _journal(tmp_path / "1") == _journal(tmp_path / "4")


def test_a_run_that_was_cut_off_ends_as_the_unbroken_one(tmp_path, method):
    _search(tmp_path / "whole", method)
    whole = _journal(tmp_path / "whole")
    lines = whole.splitlines(keepends=True)
    for kept, torn in ((1, b""), (2, b"{"), (12, b'{"kind"'), (len(lines) - 1, b"")):
        folder = tmp_path / str(kept)
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(b"".join(lines[:kept]) + torn)
        timings = (tmp_path / "whole" / "timings.jsonl").read_bytes()
        (folder / "timings.jsonl").write_bytes(timings)
        evaluator = PricingEvaluator()
        _search(folder, method, in_flight=2, evaluator=evaluator)
        assert _journal(folder) == whole
        recorded = sum(b'"kind":"result"' in line for line in lines[:kept])
        assert len(evaluator.requests) == 21 - recorded


def test_a_smaller_budget_is_the_beginning_of_a_larger_one(tmp_path, method):
    def digests(budget):
        outcome = _search(tmp_path / str(budget), method, budget=budget)
        return [step.proposal.candidate.digest for step in outcome.history]

    assert digests(18)[:7] == digests(6)


def test_no_candidate_is_proposed_twice(tmp_path, method):
    outcome = _search(tmp_path, method, budget=20)
    assert outcome.evaluations == 20
    assert len({step.proposal.candidate.digest for step in outcome.history}) == 21


def test_seeds_matter_where_there_are_dice(tmp_path, method):
    first, second = (_search(tmp_path / str(seed), method, seed=seed, budget=6) for seed in (0, 1))
    proposed = [[step.proposal.candidate.digest for step in run.history] for run in (first, second)]
    assert (proposed[0] != proposed[1]) is (method != "greedy-rules")


def test_sources_without_anything_to_rewrite_end_the_search(tmp_path, method):
    outcome = _search(tmp_path, method, spec=BARE)
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert outcome.evaluations == 0


def test_a_search_ends_when_every_rewrite_is_known(tmp_path, method):
    tiny = make_spec(kernel="constexpr int32_t BUFFER_NUM = 1;\n")
    outcome = _search(tmp_path, method, spec=tiny, budget=100)
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert {step.proposal.candidate.kernel_text for step in outcome.history} == {
        f"constexpr int32_t BUFFER_NUM = {count};\n" for count in (1, 2, 3, 4)
    }


def test_an_infrastructure_error_does_not_stop_a_method(tmp_path, method):
    evaluator = FakeEvaluator(dict.fromkeys((2, 3, 4), Status.INFRA_ERROR))  # three attempts at the second
    outcome = _search(tmp_path, method, evaluator=evaluator, budget=9)
    assert outcome.evaluations == 9
    assert [step.result.status for step in outcome.history].count(Status.INFRA_ERROR) == 1


def test_random_rewrites_say_which_rules_made_them(tmp_path):
    outcome = _search(tmp_path, "random-rewrites")
    for step in outcome.history[1:]:
        rewrites = step.proposal.origin["rewrites"]
        assert 1 <= len(rewrites) <= 4
        assert all(rule_named(rewrite["rule"]) for rewrite in rewrites)
    assert len({len(step.proposal.origin["rewrites"]) for step in outcome.history[1:]}) > 1


class ClimbEvaluator(FakeEvaluator):
    """Fast are two buffers and 40 cores; nothing else helps, and without barriers results are wrong."""

    def _answer(self, number, request):
        text = request.candidate.tiling_text + request.candidate.kernel_text
        if "PIPE_ALL" not in text:
            return failed_result(request, Status.INCORRECT, Diagnostic(phase=Phase.VERIFY, message="wrong"))
        good = ("BUFFER_NUM = 2;", "BLOCK_DIM = 40;")
        return ok_result(request, 100.0 / 2 ** sum(each in text for each in good))


def test_greedy_search_climbs_until_no_rule_improves(tmp_path):
    outcome = _search(tmp_path, "greedy-rules", evaluator=ClimbEvaluator(), budget=500)
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert outcome.speedup == pytest.approx(4)
    parents = [step.proposal.origin["parent"] for step in outcome.history[1:]]
    assert len(set(parents)) == 3
    tried = {step.proposal.candidate.digest for step in outcome.history}
    assert all(move.applied_to(outcome.best).digest in tried for move in moves_of(outcome.best))


def _baseline_observed(strategy, **ratios):
    result = ok_result(request_for(SPEC, SPEC.baseline, MeasureProtocol()), 100.0)
    cases = tuple(
        case.model_copy(update={"profile": case.profile.model_copy(update=ratios)}) for case in result.cases
    )
    strategy.observe(Proposal(SPEC.baseline, BASELINE_ORIGIN), result.model_copy(update={"cases": cases}))
    return strategy


def test_greedy_search_tries_first_what_relieves_the_busiest_pipe():
    idle = {f"aiv_{pipe}_ratio": 0.1 for pipe in ("vec", "scalar", "mte2", "mte3")}
    strategy = _baseline_observed(GreedyRules(SPEC), **{**idle, "aiv_scalar_ratio": 0.9})
    first = strategy.propose(4)
    assert len(first) == 1
    assert "scalar" in [pipe.value for pipe in rule_named(first[0].origin["rule"]).effect.pipes]
    assert strategy.propose(4) == []


def test_greedy_search_tries_one_choice_of_each_rule_before_a_second_of_any(tmp_path):
    rules = {move.rule.name for move in moves_of(SPEC.baseline) if move.choice.forward}
    evaluator = FakeEvaluator()  # nothing improves anything
    outcome = _search(tmp_path, "greedy-rules", evaluator=evaluator, budget=len(rules))
    assert {step.proposal.origin["rule"] for step in outcome.history[1:]} == rules


def test_a_generation_of_knobs_waits_for_the_one_before():
    strategy = _baseline_observed(_knobs().KnobSearch(SPEC, seed=1))
    population = _knobs().POPULATION
    first = strategy.propose(100)
    assert len(first) == population - 1
    assert all(len(proposal.origin["knobs"]) == 1 for proposal in first)
    for proposal in first:
        assert strategy.propose(100) == []
        strategy.observe(proposal, ok_result(request_for(SPEC, proposal.candidate, MeasureProtocol()), 50.0))
    second = strategy.propose(3)
    assert [proposal.origin["generation"] for proposal in second] == [1, 1, 1]
    assert len(strategy.propose(100)) == population - 3


def test_knob_search_combines_what_helped(tmp_path):
    outcome = _search(tmp_path, "knob-search", evaluator=ClimbEvaluator(), budget=80, seed=1)
    assert outcome.speedup == pytest.approx(4)
    best = next(step for step in outcome.history if step.proposal.candidate == outcome.best)
    assert best.proposal.origin["generation"] >= 1
    assert len(best.proposal.origin["knobs"]) >= 2


def test_knobs_at_zero_are_the_baseline_and_meeting_edits_are_made_once():
    knobs = knobs_of(SPEC.baseline)
    assert len({knob.name for knob in knobs}) == len(knobs)
    zero = {knob.name: 0 for knob in knobs}
    assert turned(SPEC.baseline, knobs, zero) == SPEC.baseline
    barriers = [knob for knob in knobs if knob.rule in ("full_barrier_removal", "full_barrier_narrowing")]
    everywhere = next(
        knob for knob in barriers if knob.rule == "full_barrier_removal" and knob.site.covers_all
    )
    turned_all = turned(SPEC.baseline, knobs, {**zero, **{knob.name: 1 for knob in barriers}})
    assert turned_all == turned(SPEC.baseline, knobs, {**zero, everywhere.name: 1})
    assert "PipeBarrier" not in turned_all.kernel_text


def test_every_position_of_every_knob_alone_is_that_choice_of_its_rule():
    knobs = knobs_of(SPEC.baseline)
    zero = {knob.name: 0 for knob in knobs}
    for knob in knobs:
        for position, choice in enumerate(knob.site.choices, 1):
            expected = rule_named(knob.rule).apply(SPEC.baseline, knob.site, choice)
            assert turned(SPEC.baseline, knobs, {**zero, knob.name: position}) == expected


def test_large_kernels_keep_a_limited_number_of_knobs_of_every_rule():
    barriers = "    PipeBarrier<PIPE_ALL>();\n    Exp(d, d, n);\n" * 100
    large = make_spec(tiling=TILING, kernel=KERNEL.replace("        Exp(d, d, n);\n", barriers))
    knobs = knobs_of(large.baseline)
    assert len(knobs) == MAX_KNOBS
    assert {knob.rule for knob in knobs} == {move.rule.name for move in moves_of(large.baseline)}
    assert any(knob.site.covers_all for knob in knobs)
