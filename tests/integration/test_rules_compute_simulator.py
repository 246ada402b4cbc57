"""Pipelining and compute on the simulator: rules keep results and save time, their inverses cost it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from rewritten import rule_named

from ascend_gym.core.records import Candidate, EvalRequest, MeasureProtocol
from ascend_gym.rewrites.rule import Rule
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends import simulator as simulator_module
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.simulator.chips import load_chip

pytestmark = pytest.mark.slow

OPERATORS = Path(__file__).resolve().parents[1] / "operators"

# Fewer instructions: the scalar unit is not held up by full queues and asks for the next copies in time.
_SHORTER = (
    ("whole_call", "piece"),
    ("square", "Power"),
    ("vector_barrier_removal", "PIPE_V"),
    ("early_release", "inQueueA.Free"),
)
_DOUBLE_BUFFERS = (("buffer_count", "BUFFER_NUM"),)
# The scalar unit runs ahead: what taking a tensor costs it is hidden.
_NO_FULL_BARRIER = (*_DOUBLE_BUFFERS, ("full_barrier_removal", "PIPE_ALL"))
# operator, rule, part of the site's label, what is applied before so that the rule has something to gain
SUBJECTS = [
    ("vector_motifs", "buffer_count", "BUFFER_NUM", ()),
    ("vector_motifs", "queue_buffers", "outQueue", _DOUBLE_BUFFERS),
    ("vector_motifs", "full_barrier_removal", "PIPE_ALL", ()),
    ("vector_motifs", "full_barrier_narrowing", "PIPE_ALL", ()),
    ("vector_motifs", "vector_barrier_removal", "all 2 PIPE_V", ()),
    ("vector_motifs", "barrier_hoisting", "PIPE_V", ()),
    ("vector_motifs", "event_removal", "SetFlag", ()),
    ("vector_motifs", "scalar_wait_later", "WaitFlag", ()),
    ("vector_motifs", "late_acquire", "y = outQueue", _NO_FULL_BARRIER),
    ("vector_motifs", "early_release", "inQueueB.Free", _SHORTER),
    ("vector_motifs", "axpy", "Muls then Add", ()),
    ("vector_motifs", "mul_add_dst", "Mul then Add", ()),
    ("vector_motifs", "fused_mul_add", "Mul then Add", ()),
    ("vector_motifs", "relu_fusion", "Add then Relu", ()),
    ("vector_motifs", "rsqrt", "Sqrt then Reciprocal", ()),
    ("vector_motifs", "scalar_chain", "Muls then Muls", ()),
    ("vector_motifs", "identity_removal", "Adds", ()),
    ("vector_motifs", "scalar_operand", "Duplicate then Add", ()),
    ("vector_motifs", "reciprocal", "Duplicate then Div", ()),
    ("vector_motifs", "square", "Power", ()),
    ("vector_motifs", "hoisted_duplicate", "Duplicate", ()),
    ("vector_motifs", "whole_call", "piece", ()),
    ("vector_motifs", "reduction_tree", "ReduceSum", ()),
    ("rms_norm", "block_reduction", "ReduceSum", ()),
    ("rms_norm", "load_ahead", "Load", ()),
    ("exp", "narrowing", "Cast", ()),
    ("in_place", "copy_out_wait", "queue", ()),
    ("foreach_add", "tiling_data_in_place", "GET_TILING_DATA", ()),
    ("scalar_motifs", "loop_unrolling", "this->n", ()),
    ("scalar_motifs", "prefetch", "row", ()),
    ("scalar_motifs", "hoisted_element", "GetValue", ()),
    ("scalar_motifs", "vector_fill", "this->n", ()),
    ("scalar_motifs", "vector_index", "this->n", ()),
    ("scalar_motifs", "vector_arithmetic", "this->n", ()),
]


@pytest.fixture(autouse=True)
def code_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Price what rules save each time, not the fetch of the code that they add, which is paid once."""
    monkeypatch.setattr(simulator_module, "load_chip", lambda name: load_chip(name).with_code_loaded())


class Bench:
    """Latencies of candidates of one operator on its last case; each is evaluated once."""

    def __init__(self, name: str, evaluator: InProcessEvaluator) -> None:
        folder = OPERATORS / name
        self.spec = load_operator(name, op_dir=folder if folder.is_dir() else None)
        self._evaluator = evaluator
        self._known: dict[str, float] = {}

    def latency_us(self, candidate: Candidate) -> float:
        """Return the latency of a candidate, which must be correct."""
        if candidate.digest not in self._known:
            request = EvalRequest(
                op_id=self.spec.op_id,
                op_folder=self.spec.folder if OPERATORS in Path(self.spec.folder).parents else None,
                folder_digest=self.spec.folder_digest,
                candidate=candidate,
                case_ids=(self.spec.cases[-1].case_id,),
                protocol=MeasureProtocol(run_timeout_s=20.0),
            )
            self._evaluator.submit(request)
            ((_, result),) = self._evaluator.poll(timeout_s=60.0)
            assert result.latency_us is not None, [str(d) for d in result.all_diagnostics]
            self._known[candidate.digest] = result.latency_us
        return self._known[candidate.digest]


@pytest.fixture(scope="module")
def benches(simulator, simulator_cache):
    evaluator = InProcessEvaluator(simulator, simulator_cache)
    return {name: Bench(name, evaluator) for name in {name for name, *_ in SUBJECTS}}


def _applied(rule: Rule, candidate: Candidate, where: str = "") -> Candidate:
    site = next(site for site in rule.sites(candidate) if where in site.label)
    return rule.apply(candidate, site, next(choice for choice in site.choices if choice.forward))


def _ways(rule: Rule, candidate: Candidate) -> list[Candidate]:
    return [rule.apply(candidate, site, choice) for site in rule.sites(candidate) for choice in site.choices]


def _way_back(rule: Rule, before: Candidate, after: Candidate) -> Candidate:
    """Return what the inverse makes of ``after``: the start, or else what the rule leads from to it.

    Of several such the last: there it goes furthest.
    """
    backs = _ways(rule_named(rule.inverse or ""), after)
    return before if before in backs else [back for back in backs if after in _ways(rule, back)][-1]


@pytest.mark.parametrize(
    ("name", "rule_name", "where", "first"),
    SUBJECTS,
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_a_rule_saves_time_and_its_inverse_costs_it(benches, name, rule_name, where, first):
    bench, rule = benches[name], rule_named(rule_name)
    before = bench.spec.baseline
    for prior, at in first:
        before = _applied(rule_named(prior), before, at)
    after = _applied(rule, before, where)
    assert bench.latency_us(after) < bench.latency_us(before)
    assert bench.latency_us(_way_back(rule, before, after)) > bench.latency_us(after)


def test_folding_a_tail_keeps_results_and_time(benches):
    """What it saves on hardware, instructions to fetch, has no price on the simulator."""
    bench, rule = benches["scalar_motifs"], rule_named("loop_tail_folding")
    before = bench.spec.baseline
    after = _applied(rule, before)
    assert bench.latency_us(after) == pytest.approx(bench.latency_us(before), rel=1e-3)
    assert bench.latency_us(_ways(rule_named("tail_splitting"), after)[0]) == pytest.approx(
        bench.latency_us(after), rel=1e-3
    )
