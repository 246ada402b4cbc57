"""Operators without sources on the real simulator: framework calls, programs, and their interpretation."""

import math
from random import Random

import gymnasium
import pytest
from staged_programs import agreement_request, random_program, toy_inputs, toy_spec

import ascend_gym  # noqa: F401  registers the environment
from agents.ascend_craft.agent import AscendCraft
from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import RuleDrafter, drafted
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.staged.lower import lower
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evaluator(simulator, simulator_cache):
    evaluator = InProcessEvaluator(simulator, simulator_cache)
    yield evaluator
    evaluator.close()


def _answer(evaluator, request):
    request_id = evaluator.submit(request)
    ((answered, result),) = evaluator.poll(60.0)
    assert answered == request_id
    return result


@pytest.mark.parametrize("name", ["softmax", "max_pooling_2d", "cumsum_reverse"])
def test_a_program_holds_on_the_hidden_cases(evaluator, name):
    spec = load_operator(f"generate/{name}")
    candidate = lower(checked(spec, drafted(spec)))
    hidden = tuple(case.case_id for case in spec.hidden_cases)
    result = _answer(evaluator, request_for(spec, candidate, MeasureProtocol(), hidden))
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    assert {case.case_id for case in result.cases} == set(hidden)


def test_the_skeleton_is_priced_as_framework_calls_and_any_other_text_is_not(evaluator):
    spec = load_operator("generate/swish")
    result = _answer(evaluator, request_for(spec, spec.baseline, MeasureProtocol()))
    assert result.status is Status.OK
    assert result.charge.evaluations == 0
    assert "2 framework calls (sigmoid, mul)" in str(result.all_diagnostics[0])
    largest = max(spec.cases, key=lambda case: case.traffic_bytes)
    latency_us = {case.case_id: case.latency_us for case in result.cases}[largest.case_id]
    assert latency_us > largest.inputs[0].size_bytes / 1.48e6  # one pass from HBM at 1.48 TB/s
    other = spec.baseline.rewritten(kernel=spec.baseline.kernel_text + "// more\n")
    assert _answer(evaluator, request_for(spec, other, MeasureProtocol())).status is Status.TILING_ERROR


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_a_random_program_computes_what_its_interpretation_says(evaluator, seed):
    rng = Random(seed)
    text = random_program(rng)
    spec = toy_spec(rng.randint(1, 9), rng.choice([1, 64, 100, 333]))
    result = _answer(evaluator, agreement_request(text, spec, toy_inputs(spec, seed)))
    assert result.status is Status.OK, [text, *(str(each) for each in result.all_diagnostics)]


def test_the_first_correct_candidate_is_rewarded_against_the_framework_calls(simulator_daemon):
    spec = load_operator("generate/softsign")
    right = lower(checked(spec, drafted(spec)))
    env = gymnasium.make("AscendOp-v0", operator="generate/softsign", budget=3, daemon=simulator_daemon)
    seen, _ = env.reset(seed=1)
    assert "Reference in numpy" in seen["kernel"]
    eager_us = float(seen["latency_us"][0]) if "latency_us" in seen else None
    _, failed, *_ = env.step({"tiling": "", "kernel": "// nothing"})
    seen, first, _, _, info = env.step({"tiling": right.tiling_text, "kernel": right.kernel_text})
    assert failed == 0.0
    assert info["status"] == "ok"
    assert first == pytest.approx(math.log(seen["speedup"][0]))
    assert first > 0.0
    assert eager_us is None or eager_us > info["latency_us"]
    assert seen["kernel"] == right.kernel_text
    env.close()


def test_a_search_drafts_then_turns_knobs_and_repeats_itself(simulator, simulator_cache, tmp_path):
    spec = load_operator("generate/l1_norm")
    journals = []
    for in_flight in (1, 2):
        folder = tmp_path / str(in_flight)
        evaluator = InProcessEvaluator(simulator, simulator_cache)
        with Journal(folder) as journal:
            strategy = AscendCraft(spec, RuleDrafter(spec))
            ledger = BudgetLedger(Budget(3))
            outcome = run_search(spec, strategy, evaluator, ledger, journal, in_flight=in_flight)
        evaluator.close()
        journals.append((folder / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1]
    assert [step.proposal.origin["kind"] for step in outcome.history] == [
        "baseline",
        "program",
        "knob",
        "knob",
    ]
    assert outcome.history[1].result.status is Status.OK
    assert outcome.best.digest != spec.baseline.digest
